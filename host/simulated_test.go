package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

const mib = 1 << 20

func simulated(t *testing.T, opts host.SimulatedOptions) fixture {
	t.Helper()
	opts.Dir = filepath.Join(t.TempDir(), "not made yet")
	return newFixture(host.NewSimulated(opts), "simulated", opts.Dir)
}

func (f fixture) usage(t *testing.T) host.Usage {
	t.Helper()
	u, err := f.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (f fixture) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.Dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSimulatedIdle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                  string
		opts                  host.SimulatedOptions
		gpus                  int
		gpu, total, available int64
	}{
		{"founding case", host.SimulatedOptions{}, 8, 97871, 449e9, 440e9},
		{"less memory", host.SimulatedOptions{RAMTotalBytes: 200e9}, 8, 97871, 200e9, 191e9},
		{"all given", host.SimulatedOptions{GPUs: 2, GPUTotalMiB: 81559, RAMTotalBytes: 100e9, RAMAvailableBytes: 50e9}, 2, 81559, 100e9, 50e9},
		{"tiny", host.SimulatedOptions{RAMTotalBytes: 5e9}, 8, 97871, 5e9, 0},
	} {
		u := simulated(t, c.opts).usage(t)
		if len(u.GPUs) != c.gpus || u.MemTotal != c.total || u.MemAvailable != c.available || u.GPUNote != "" {
			t.Errorf("%s: %+v", c.name, u)
		}
		for i, g := range u.GPUs {
			if g.Index != i || g.Total != c.gpu*mib || g.Used != 600*mib || g.Processes != nil || g.UUID == "" {
				t.Errorf("%s: %+v", c.name, g)
			}
		}
		if u.OOMKills != 0 || u.CgroupOOMKills != -1 || u.CgroupHeadroom != -1 || u.Processes != 0 {
			t.Errorf("%s: %+v", c.name, u)
		}
	}
}

func TestSimulatedClaims(t *testing.T) {
	t.Parallel()
	f := simulated(t, host.SimulatedOptions{GPUs: 3})
	p := f.Shell(t, `cd "$FAKENVML_CLAIMS"; echo "1000 live" >0-$$; echo 2000 >1-$$; echo 500 sticky >>2-$$; echo 300 >ram-$$; echo ok; sleep 60`)
	hosttest.FirstLine(t, p)
	pid := p.ID().PID
	f.write(t, "2-999999", "70 ghost") // of a process that is long gone
	for _, noise := range []string{"0-12.tmp", ".1-12", "oom_kills", "ram-x", "x-1", "0--1", "7-1", "lease-x.json", "1-1"} {
		f.write(t, noise, "no number")
	}
	f.write(t, "77-1", "100") // a GPU this host does not have

	u := f.usage(t)
	held := func(n int64) []host.GPUProcess { return []host.GPUProcess{{PID: pid, Used: n * mib, Name: "sh"}} }
	want := []host.GPU{{Used: 1600 * mib, Processes: held(1000)}, {Used: 2600 * mib, Processes: held(2000)}, {Used: 1170 * mib, Processes: held(500)}}
	compareGPUs(t, "while it lives", want, u)
	if u.MemAvailable != 440e9-300*mib || u.Processes < 1 {
		t.Errorf("available %d, %d processes", u.MemAvailable, u.Processes)
	}

	hosttest.Stop(t, p, 0)
	u = f.usage(t)
	stuck := []host.GPUProcess{{PID: pid, Used: 500 * mib}}
	compareGPUs(t, "after its death", []host.GPU{{Used: 600 * mib}, {Used: 600 * mib}, {Used: 1170 * mib, Processes: stuck}}, u)
	if u.MemAvailable != 440e9 || u.Processes != 0 {
		t.Errorf("available %d, %d processes", u.MemAvailable, u.Processes)
	}
	if _, err := os.Stat(filepath.Join(f.Dir, fmt.Sprintf("0-%d", pid))); !os.IsNotExist(err) {
		t.Errorf("a dead claim waits for the next process of that pid: %v", err)
	}

	for _, name := range []string{fmt.Sprintf("2-%d", pid), "2-999999"} {
		if err := os.Remove(filepath.Join(f.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	compareGPUs(t, "when freed", []host.GPU{{Used: 600 * mib}, {Used: 600 * mib}, {Used: 600 * mib}}, f.usage(t))
}

// compareGPUs compares memory and holders.
func compareGPUs(t *testing.T, when string, want []host.GPU, u host.Usage) {
	t.Helper()
	var got []host.GPU
	for _, g := range u.GPUs {
		got = append(got, host.GPU{Used: g.Used, Processes: g.Processes})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", when, diff)
	}
}

func TestSimulatedOOMKill(t *testing.T) {
	t.Parallel()
	f := simulated(t, host.SimulatedOptions{})
	p := f.Shell(t, `cd "$FAKENVML_CLAIMS"; echo 999999999 >ram-$$; echo 1 >oom_kills; kill -9 $$`)
	if e := hosttest.Wait(t, p); !e.OOMKilled || e.Signal != 9 {
		t.Errorf("%+v", e)
	}
	if u := f.usage(t); u.OOMKills != 1 || u.MemAvailable != 440e9 {
		t.Errorf("%+v", u)
	}
	if e := hosttest.Wait(t, f.Shell(t, "kill -9 $$")); e.OOMKilled {
		t.Errorf("an old kill is blamed: %+v", e)
	}
}

// Times are the host's; a grace on a fast clock is short, but long enough to end in.
func TestSimulatedClock(t *testing.T) {
	t.Parallel()
	night := time.Date(2030, 1, 2, 22, 0, 0, 0, time.UTC)
	f := simulated(t, host.SimulatedOptions{Clock: host.NewClock(night, 1000)})
	if at := f.usage(t).At; at.Before(night) || at.After(night.Add(24*time.Hour)) {
		t.Errorf("usage at %s", at)
	}
	p := f.Helper(t, "stubborn")
	hosttest.FirstLine(t, p)
	begin := time.Now()
	hosttest.Stop(t, p, 100*time.Second)
	if took := time.Since(begin); took < time.Second || took > 20*time.Second {
		t.Errorf("a grace of 100 s at 1000 times the speed took %s, want the least of 1 s", took)
	}
	if at := p.Exit().At; at.Before(night) || at.After(night.Add(24*time.Hour)) {
		t.Errorf("exit at %s", at)
	}
}
