package host_test

import (
	"os"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

func TestMain(m *testing.M) {
	if role := guardRole(); role != nil {
		os.Exit(role())
	}
	hosttest.Main(m, newHost)
}

// newHost makes a host of a kind in a folder; two with one folder are one host.
func newHost(kind, dir string) host.Host {
	switch kind {
	case "simulated":
		return host.NewSimulated(host.SimulatedOptions{Dir: dir, Clock: hosttest.Clock(dir, 50), BootIDFile: hosttest.BootIDFile(dir)})
	case "remote":
		return newRemote(dir)
	}
	return host.NewLocal(host.LocalOptions{StateDir: dir, Clock: hosttest.Clock(dir, 1), BootIDFile: hosttest.BootIDFile(dir)})
}

func newRemote(dir string) *host.Remote {
	return host.NewRemote(host.RemoteOptions{Link: hosttest.AgentLink(dir), Clock: hosttest.Clock(dir, 1)})
}

func suite(kind string) hosttest.Suite {
	return hosttest.Suite{
		Kind: kind, Kept: kind == "remote", New: func(dir string) host.Host { return newHost(kind, dir) },
		Way: hosttest.Way{Cut: hosttest.CutAgentLink, Away: 2 * time.Second},
	}
}

func TestLocalConforms(t *testing.T)     { t.Parallel(); hosttest.Conform(t, suite("local")) }
func TestSimulatedConforms(t *testing.T) { t.Parallel(); hosttest.Conform(t, suite("simulated")) }
func TestRemoteConforms(t *testing.T)    { t.Parallel(); hosttest.Conform(t, suite("remote")) }

// fixture is a host in a folder of one test.
type fixture struct{ hosttest.Fixture }

func newFixture(h host.Host, kind, dir string) fixture {
	return fixture{hosttest.Fixture{Host: h, Suite: hosttest.Suite{Kind: kind}, Dir: dir, Marker: hosttest.NewMarker()}}
}
