package hosttest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sgtune/host"
)

// agentWord makes the test binary play sgtune-agent.
const agentWord = "hosttest-agent"

func isAgent() bool { return len(os.Args) > 3 && os.Args[1] == agentWord }

// AgentLink is a link to an agent on this machine, played by the test binary; its lease and its work folder lie in dir.
// CutAgentLink takes it away.
func AgentLink(dir string) host.CommandLink {
	gate := `[ ! -e "$0/` + cutFile + `" ] && exec "$@"; echo the link is cut >&2`
	return host.CommandLink{Name: "test-host", Argv: []string{"sh", "-c", gate, dir, os.Args[0], agentWord, dir}}
}

// agentMain does what sgtune-agent does with a word: args are the folder, the word and what belongs to it.
func agentMain(args []string) error {
	dir, word := args[0], args[1]
	if err := os.Unsetenv(HelperEnv); err != nil { // what it starts is no helper unless told so
		return err
	}
	ctx, l := context.Background(), host.NewLocal(host.LocalOptions{
		StateDir: dir, BootIDFile: BootIDFile(dir), Clock: Clock(dir, 1), Self: ContainSelf(dir),
	})
	switch word {
	case "serve":
		return host.Serve(ctx, os.Stdin, os.Stdout, host.ServeOptions{
			Host: l, Work: filepath.Join(dir, "work"), Self: []string{"/proc/self/exe", agentWord, dir}, Version: "test",
		})
	case "keep":
		return host.KeepMain(ctx, l, args[2])
	case "contain":
		return containMain(ctx, l, args[2])
	case "hold":
		return host.HoldMain(ctx, l, args[2])
	case "stay":
		return host.StayMain(ctx, l, args[2], maskExact)
	}
	return fmt.Errorf("an agent knows no %q", word)
}

// ContainSelf is how the test binary holds a container of a host in a folder (host.LocalOptions.Self).
func ContainSelf(dir string) []string { return []string{"/proc/self/exe", agentWord, dir} }

// containMain ends as the container does.
func containMain(ctx context.Context, l *host.Local, folder string) error {
	status, err := host.ContainMain(ctx, l, folder, os.Stdout)
	if err == nil {
		os.Exit(status)
	}
	return err
}

// maskExact masks exact secrets, as the real mask does among other things.
func maskExact(w io.Writer, secrets ...string) host.MaskedLog {
	return exactMask{w: w, secrets: secrets}
}

type exactMask struct {
	w       io.Writer
	secrets []string
}

func (m exactMask) Write(p []byte) (int, error) {
	text := string(p)
	for _, secret := range m.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	_, err := io.WriteString(m.w, text)
	return len(p), err
}

func (m exactMask) Flush() error { return nil }
