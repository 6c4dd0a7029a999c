// Package agent is sgtune's side of sgtune-agent, the program that replays beside the server on another machine:
// the program itself, embedded for each architecture (embed.go), and Run, which has a started one do a load
// level (run.go; link.go is the connection to it). What is said on the connection is package internal/replayjob.
//
// How the program comes to the machine and is started there is not this package's matter: it gets the standard
// input and output of a process.
package agent
