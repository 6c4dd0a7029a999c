package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/internal/replayjob"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // no result; the caller was told why on stdout, or was gone
	exitUsage  = 2
)

const usage = `sgtune-agent does on the machine of a server what the sgtune that started it cannot do from afar.

  sgtune-agent replay         read a job from standard input, write events to standard output; JSON lines
  sgtune-agent serve FOLDER   start, watch and stop processes for sgtune: requests on standard input, answers on
                              standard output; JSON lines. FOLDER is for what belongs to them
  sgtune-agent pipe PORT      connect standard input and output to a port of this machine's loopback
  sgtune-agent version        print version, protocol and platform

serve itself runs "keep" for each process, "hold" for the lease of the host and "stay" for a server that is left running;
keep runs "contain" for a server in a container.

Example:
  ssh gpu-host ./sgtune-agent version
`

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	word := ""
	switch {
	case len(args) == 1:
		word = args[0]
	case len(args) == 2 && args[0] == "contain":
		return contain(ctx, args[1], stdout, stderr)
	case len(args) == 2 && takesFolder[args[0]] != nil:
		return withFolder(ctx, args[0], args[1], stdin, stdout, stderr)
	case len(args) == 2 && args[0] == "pipe":
		return pipe(ctx, args[1], stdin, stdout, stderr)
	}
	switch word {
	case "replay":
		return replay(ctx, stdin, stdout, stderr)
	case "version":
		_, _ = fmt.Fprintf(stdout, "%s %s protocol %d %s/%s %s\n", replayjob.Program, replayjob.Version(), replayjob.Protocol, runtime.GOOS, runtime.GOARCH, runtime.Version())
		return exitDone
	case "help", "--help", "-h":
		_, _ = fmt.Fprint(stdout, usage)
		return exitDone
	}
	_, _ = fmt.Fprint(stderr, "sgtune-agent: one of replay, serve FOLDER, pipe PORT, version or help is wanted\n\n"+usage)
	return exitUsage
}

func replay(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) int {
	stop := benchmark.FewProcessors(ctx)
	defer stop()
	err := replayjob.Serve(ctx, stdin, stdout, replayjob.Version())
	if err == nil {
		return exitDone
	}
	if errors.Is(err, replayjob.ErrGone) { // a failure was told on stdout, an absence can only be told here
		_, _ = fmt.Fprintln(stderr, "sgtune-agent:", err)
	}
	return exitFailed
}

func pipe(ctx context.Context, port string, stdin io.Reader, stdout, stderr io.Writer) int {
	if err := host.PipeMain(ctx, port, stdin, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, "sgtune-agent:", err)
		return exitFailed
	}
	return exitDone
}
