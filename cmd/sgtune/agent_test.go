package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"sgtune/host"
	"sgtune/internal/replayjob"
)

// pretended is sgtune whose agent is this test: the tests need no `make agent`.
func pretended() {
	builtAgent = func(string) ([]byte, string, error) {
		program := []byte("#!/bin/sh\nexec sgtune-agent \"$@\"\n") // the scripts have it in their PATH
		sum := sha256.Sum256(program)
		return program, hex.EncodeToString(sum[:]), nil
	}
	main()
}

// agentMain is what cmd/sgtune-agent does.
func agentMain() {
	ctx, l := context.Background(), host.NewLocal(host.LocalOptions{})
	self, err := os.Executable() // the name of the copy is what makes it the agent
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	switch word := os.Args[1]; word {
	case "serve":
		err = host.Serve(ctx, os.Stdin, os.Stdout, host.ServeOptions{Host: l, Self: []string{self}, Work: os.Args[2], Version: "test", Ask: os.Getenv(host.SlurmAskEnv)})
	case "keep":
		err = host.KeepMain(ctx, l, os.Args[2])
	case "hold":
		err = host.HoldMain(ctx, l, os.Args[2])
	case "pipe":
		err = host.PipeMain(ctx, os.Args[2], os.Stdin, os.Stdout)
	case "replay":
		err = replayjob.Serve(ctx, os.Stdin, os.Stdout, replayjob.Version())
	default:
		err = fmt.Errorf("sgtune-agent: %q", word)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
