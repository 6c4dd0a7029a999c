package hosttest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BuildAgent makes a folder for a testbed, named in the variable bedEnv, and builds sgtune-agent there, named in agentEnv
// unless that names one already: of the process that has this one run one test alone. Short tests need neither. The
// caller calls undo, also after an error.
func BuildAgent(prefix, bedEnv, agentEnv string) (undo func(), err error) {
	if flag.Parse(); testing.Short() {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return func() {}, fmt.Errorf("make the folder of a testbed: %w", err)
	}
	undo = func() { _ = os.RemoveAll(dir) }
	if err := os.Setenv(bedEnv, dir); err != nil {
		return undo, fmt.Errorf("name the folder of a testbed: %w", err)
	}
	if _, err := os.Stat(os.Getenv(agentEnv)); err == nil {
		return undo, nil
	}
	agent := filepath.Join(dir, "sgtune-agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", agent, "sgtune/cmd/sgtune-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return undo, fmt.Errorf("build the agent: %w: %s", err, out)
	}
	if err := os.Setenv(agentEnv, agent); err != nil {
		return undo, fmt.Errorf("name the agent: %w", err)
	}
	return undo, nil
}
