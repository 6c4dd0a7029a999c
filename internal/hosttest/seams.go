package hosttest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
)

// The folder of a host holds what a test makes its machine believe, so that every program that plays a part of it sees
// the same.
const (
	bootIDFile = "boot_id" // name of this start of the machine
	sleptFile  = "slept"   // how long it has slept, as time.Duration prints it
	cutFile    = "cut"     // the link is down
)

// BootIDFile is the file that names the start of a folder's machine, "" where that is the real one's.
func BootIDFile(dir string) string {
	path := filepath.Join(dir, bootIDFile)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// clocks are those of the folders in this process.
var clocks sync.Map

// Clock is the clock of a folder's host, which jumps as clockJump has it.
func Clock(dir string, scale float64) *host.Clock {
	c, _ := clocks.LoadOrStore(dir, host.NewClockSlept(time.Now(), scale, func() time.Duration {
		b, err := os.ReadFile(filepath.Join(dir, sleptFile))
		if err != nil {
			return 0 // none yet
		}
		slept, err := time.ParseDuration(strings.TrimSpace(string(b)))
		if err != nil {
			return 0
		}
		return slept
	}))
	clock, _ := c.(*host.Clock) // nothing else is stored
	return clock
}

// put writes a file of a host's folder in one step.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// agents are the living processes of the agent that belong to a folder: serving, keeping, holding.
func agents(t *testing.T, dir string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil || !ofAgent(strings.Split(string(b), "\x00"), dir) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// ofAgent reports whether a command line is that of an agent, or of a way to one, whose folder is dir or in it.
func ofAgent(argv []string, dir string) bool {
	word, folder := false, false
	for _, arg := range argv {
		word = word || arg == "serve" || arg == "keep" || arg == "hold"
		folder = folder || arg == dir || strings.HasPrefix(arg, dir+"/")
	}
	return word && folder
}

// killAgents ends every agent of a folder the hard way.
func killAgents(t *testing.T, dir string) {
	t.Helper()
	for _, pid := range agents(t, dir) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
}

// closed reports whether a channel is.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// recovered logs the seconds after which everything was as it should be; docs/reliability.md tells them.
func recovered(t *testing.T, since time.Time) {
	t.Helper()
	t.Logf("recovered in %.2f s", time.Since(since).Seconds())
}

// eventually waits for something to become true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
