// Command sgtune finds the best launch configuration of an SGLang server overnight and safely.
//
// This package is flags, wiring, signals and exit codes only; what the program does lives in the
// packages it wires. Read main.go (run, exit codes), then tune.go (a study from its file to its
// verdict), wire.go (its parts put together) and signals.go, then one file per command. What a person
// sees of a running study is in terminal.go (what it is told), lines.go (the log), status.go (the live
// lines) and ending.go (the first lines and the last). sgtune diagnose is diagnose.go, diagnose_source.go (files,
// gzip, zstd), diagnosis.go (reading), diagnose_page.go (what a person sees) and diagnose_follow.go (-f). sgtune
// suggest is suggest.go (lines in, lines out), suggest_session.go (requests), suggest_space.go, _knob, _grid, _rules, _facts
// (init) and suggest_observation.go. What no file may hold is in secrets.go.
package main
