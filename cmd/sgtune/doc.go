// Command sgtune finds the best launch configuration of an SGLang server overnight and safely.
//
// This package is flags, wiring, signals and exit codes only; what the program does lives in the
// packages it wires. Read main.go (run, exit codes), then tune.go (how a study is wired), then one
// file per command.
package main
