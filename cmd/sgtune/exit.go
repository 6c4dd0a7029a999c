package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"sgtune/host"
	"sgtune/trial"
	"sgtune/tuner"
)

// Exit codes of the program (design: the command line).
const (
	exitDone        = 0
	exitFailed      = 1 // no verdict, or the command failed
	exitUsage       = 2 // wrong usage or file
	exitHost        = 3 // the host is dirty or held by somebody else
	exitInterrupted = 130
)

// exitError carries the exit code an error ends the program with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failf is an error that ends the program with a code of its own.
func failf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// usagef is a mistake in how the program was called or in a file it was given: exit 2.
func usagef(format string, args ...any) error { return failf(exitUsage, format, args...) }

// exitCode picks the exit code of an error that a command returned. A host that cannot be reached is neither dirty nor
// held, as far as anybody knows: the command failed.
func exitCode(err error) int {
	var coded *exitError
	var problems tuner.Problems
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &problems):
		return exitUsage
	case errors.Is(err, trial.ErrDirtyHost), errors.Is(err, tuner.ErrHeld), errors.Is(err, host.ErrLeased):
		return exitHost
	}
	return exitFailed
}

// printError writes an error for a person: one line a mistake, nothing for a silent one.
func printError(w io.Writer, err error) {
	text := strings.TrimRight(err.Error(), "\n")
	if text == "" {
		return
	}
	var problems tuner.Problems
	if !errors.As(err, &problems) {
		text = "sgtune: " + oneLine(text)
	}
	_, _ = fmt.Fprintln(w, text)
}
