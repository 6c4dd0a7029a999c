package hosttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sgtune/host"
)

// agentWord makes the test binary play sgtune-agent.
const agentWord = "hosttest-agent"

func isAgent() bool { return len(os.Args) > 3 && os.Args[1] == agentWord }

// AgentLink is a link to an agent on this machine, played by the test binary; its lease and its work folder lie in dir.
func AgentLink(dir string) host.CommandLink {
	return host.CommandLink{Name: "test-host", Argv: []string{os.Args[0], agentWord, dir}}
}

// agentMain does what sgtune-agent does with a word: args are the folder, the word and what belongs to it.
func agentMain(args []string) error {
	dir, word := args[0], args[1]
	if err := os.Unsetenv(HelperEnv); err != nil { // what it starts is no helper unless told so
		return err
	}
	ctx, l := context.Background(), host.NewLocal(host.LocalOptions{StateDir: dir})
	switch word {
	case "serve":
		return host.Serve(ctx, os.Stdin, os.Stdout, host.ServeOptions{
			Host: l, Work: filepath.Join(dir, "work"), Self: []string{"/proc/self/exe", agentWord, dir}, Version: "test",
		})
	case "keep":
		return host.KeepMain(ctx, l, args[2])
	case "hold":
		return host.HoldMain(ctx, l, args[2])
	}
	return fmt.Errorf("an agent knows no %q", word)
}
