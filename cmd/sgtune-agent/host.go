package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sgtune/host"
	"sgtune/internal/replayjob"
	"sgtune/sglang"
)

// takesFolder are the words that are followed by a folder.
var takesFolder = map[string]func(ctx context.Context, folder string, stdin io.Reader, stdout io.Writer) error{
	"serve": func(ctx context.Context, folder string, stdin io.Reader, stdout io.Writer) error {
		return host.Serve(ctx, stdin, stdout, host.ServeOptions{
			Host: machine(), Work: folder, Version: replayjob.Version(), Ask: os.Getenv(host.SlurmAskEnv),
		})
	},
	"keep": func(ctx context.Context, folder string, _ io.Reader, _ io.Writer) error {
		return host.KeepMain(ctx, machine(), folder)
	},
	"stay": func(ctx context.Context, folder string, _ io.Reader, _ io.Writer) error {
		return host.StayMain(ctx, machine(), folder, func(w io.Writer, secrets ...string) host.MaskedLog { return sglang.NewMaskWriter(w, secrets...) })
	},
	"hold": func(ctx context.Context, folder string, _ io.Reader, _ io.Writer) error {
		return host.HoldMain(ctx, machine(), folder)
	},
}

// machine is the one this program runs on. Without cgo its GPUs are read by nvidia-smi.
func machine() *host.Local { return host.NewLocal(host.LocalOptions{GPUs: (&host.SMI{}).Read}) }

func withFolder(ctx context.Context, word, folder string, stdin io.Reader, stdout, stderr io.Writer) int {
	if !filepath.IsAbs(folder) {
		_, _ = fmt.Fprintf(stderr, "sgtune-agent %s: %q is not an absolute path\n", word, folder)
		return exitUsage
	}
	if err := takesFolder[word](ctx, folder, stdin, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, "sgtune-agent:", err)
		return exitFailed
	}
	return exitDone
}
