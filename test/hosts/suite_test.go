package hosts

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// newHost makes the kinds "gpu-host" and "gpu-via-jump". The folder holds all of the host that the suite upsets.
func newHost(kind, dir string) host.Host {
	o := options(kind, dir)
	o.Work = filepath.Join(dir, "work")
	placeAgent(o.Work)
	if file := hosttest.BootIDFile(dir); file != "" {
		o.Env[host.BootIDEnv] = file
	}
	link, err := host.NewSSH(o)
	if err != nil {
		panic(err) // of a test: there is no t in helper programs
	}
	return host.NewRemote(host.RemoteOptions{Link: link, Clock: hosttest.Clock(dir, 1)})
}

// placeAgent spares a test the copying of the agent, which has tests of its own. Where it fails the agent is copied.
func placeAgent(work string) {
	_, sum, err := agent("")
	if err != nil || os.MkdirAll(filepath.Join(work, "bin"), 0o700) != nil {
		return
	}
	_ = os.Link(os.Getenv(agentEnv), filepath.Join(work, "bin", "sgtune-agent-"+sum[:16]))
}

func suite(kind string) hosttest.Suite {
	s := hosttest.Suite{
		Kind: kind, Kept: true, Elsewhere: true, New: func(dir string) host.Host { return newHost(kind, dir) },
		Way: hosttest.Way{Cut: cut, Away: 30 * time.Second, Restart: restart},
	}
	if kind == "gpu-via-jump" {
		s.Way.Away = 3 * time.Second // once for 30 s is enough
	}
	return s
}

// cut cuts the connections, kills our ends of them, control masters included, and then the servers are away.
func cut(t *testing.T, f hosttest.Fixture) (mend func()) {
	t.Helper()
	do(t, "drop")
	if _, err := f.Usage(t.Context()); err != nil { // over new ones
		t.Error(err)
	}
	killClients(t)
	do(t, "stop")
	return func() { comeBack(t) }
}

// restart ends both servers with their connections and starts them.
func restart(t *testing.T, _ hosttest.Fixture) {
	t.Helper()
	do(t, "stop")
	comeBack(t)
}

func comeBack(t *testing.T) {
	t.Helper()
	do(t, "start")
	if err := addKeys(); err != nil {
		t.Fatal(err)
	}
}
