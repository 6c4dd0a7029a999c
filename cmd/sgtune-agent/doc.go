// Command sgtune-agent replays a load at a server on its own machine and streams what it measures to the sgtune
// that started it (package internal/replayjob), so that no network link is inside a latency. It is one static
// file without cgo, takes no flags, reads no configuration and writes no file.
package main
