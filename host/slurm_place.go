package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// SlurmPlace is a machine that has Slurm's programs and sees the file system that the nodes share: the agent and
// everything else of ours lies in a work folder there. Implementations: SlurmHereLink, SSH.
type SlurmPlace interface {
	SlurmLogin
	Link
	// Placed returns the work folder and the agent in it, both absolute. The agent is there once Open has succeeded.
	Placed(ctx context.Context) (work, agent string, err error)
}

var (
	_ SlurmPlace = (*SlurmHereLink)(nil)
	_ SlurmPlace = (*SSH)(nil)
)

// SlurmHereLink is this machine as a login node.
type SlurmHereLink struct {
	SlurmHere
	Work string // on the file system that the nodes share; "" = $XDG_CACHE_HOME/sgtune or ~/.cache/sgtune
	// Agent returns the agent for an architecture, and its SHA-256 in hexadecimal.
	Agent func(arch string) (program []byte, sha256 string, err error)

	mu     sync.Mutex
	placed string // path of the agent, "" before
}

// oldAgent is how long an agent of another version stays: a job of an earlier sgtune may still run it.
const oldAgent = 7 * 24 * time.Hour

// Placed puts the agent into the work folder where it is not there; see SlurmPlace.
func (h *SlurmHereLink) Placed(context.Context) (work, agent string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	work = h.Work
	if work == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", "", fmt.Errorf("find the work folder: %w; name one with host.work_dir", err)
		}
		work = filepath.Join(cache, "sgtune")
	}
	if _, err := os.Stat(h.placed); h.placed != "" && err == nil {
		return work, h.placed, nil
	}
	program, sum, err := h.Agent(runtime.GOARCH)
	if err != nil {
		return "", "", err
	}
	bin := filepath.Join(work, "bin")
	agent = filepath.Join(bin, "sgtune-agent-"+sum[:min(16, len(sum))])
	if err := placeAgent(agent, program, sum); err != nil {
		return "", "", fmt.Errorf("put the agent into the work folder: %w; name another one with host.work_dir", err)
	}
	others, _ := filepath.Glob(filepath.Join(bin, "sgtune-agent-*")) // a pattern without mistakes
	for _, other := range others {
		if info, err := os.Stat(other); other != agent && err == nil && time.Since(info.ModTime()) > oldAgent {
			_ = os.Remove(other) // a tidying on the way
		}
	}
	h.placed = agent
	return work, agent, nil
}

// placeAgent writes the program unless it is there already, by its checksum.
func placeAgent(file string, program []byte, sum string) error {
	if b, err := os.ReadFile(file); err == nil {
		if there := sha256.Sum256(b); hex.EncodeToString(there[:]) == sum {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	part := fmt.Sprintf("%s.%d", filepath.Join(filepath.Dir(file), ".new"), os.Getpid())
	if err := os.WriteFile(part, program, 0o700); err != nil {
		return errors.Join(err, removeIfThere(part))
	}
	return os.Rename(part, file)
}

// Open starts the agent on this machine; see Link.
func (h *SlurmHereLink) Open(ctx context.Context, word string) (*LinkConn, error) {
	work, agent, err := h.Placed(ctx)
	if err != nil {
		return nil, &LinkError{Host: h.String(), Text: err.Error(), Final: true}
	}
	argv := []string{agent, word}
	if word == "serve" {
		argv = append(argv, work)
	}
	c, err := startLink(argv, h.Env)
	if err != nil {
		return nil, &LinkError{Host: h.String(), Text: err.Error(), Final: true}
	}
	return c, nil
}

// Dialer is nil: the machine's addresses are ours.
func (h *SlurmHereLink) Dialer(int) func(context.Context, string, string) (net.Conn, error) {
	return nil
}

// Close does nothing: nothing is kept.
func (h *SlurmHereLink) Close() error { return nil }

// String names the machine.
func (h *SlurmHereLink) String() string { return "this login node" }

// placedScript finds the work folder as the bootstrap does (askScript), and the one agent that this leaves in it.
const placedScript = `case $1 in
'') W=${XDG_CACHE_HOME:-$HOME/.cache}/sgtune ;;
'~') W=$HOME ;;
'~/'*) W=$HOME/${1#'~/'} ;;
/*) W=$1 ;;
*) W=$HOME/$1 ;;
esac
for a in "$W"/bin/sgtune-agent-*; do [ ! -x "$a" ] || printf '%s\n' "$W" "$a"; done`

// Placed asks for the work folder and the agent on the machine; see SlurmPlace.
func (l *SSH) Placed(ctx context.Context) (work, agent string, err error) {
	output, status, err := l.RunCommand(ctx, []string{"sh", "-c", placedScript, "sh", l.opts.Work}, "")
	if err != nil {
		return "", "", err
	}
	lines := slices.DeleteFunc(strings.Split(output, "\n"), func(line string) bool { return line == "" })
	if status != 0 || len(lines) < 2 || !path.IsAbs(lines[0]) || !path.IsAbs(lines[1]) {
		return "", "", fmt.Errorf("find the agent on %s: %s", l.opts.Address, slurmSaid(output))
	}
	return lines[0], lines[1], nil
}
