package hosttest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// space is what a cell must not share with other tests. Such a cell runs in a process of its own, with servers of its own
// where the kind has some (the setup functions of Main), started in the namespaces that it needs.
type space int

const (
	shared     space = iota
	ownServers       // it cuts the way of everybody who uses it
	ownMounts        // it mounts a file system
	ownPIDs          // it has numbers of processes used twice
)

// enter are the words that start a program in a space.
func (s space) enter() []string {
	var argv []string
	switch s {
	case ownMounts:
		argv = []string{"unshare", "--mount"}
	case ownPIDs:
		argv = []string{"unshare", "--mount", "--pid", "--fork", "--mount-proc"}
	}
	if argv != nil && os.Getuid() != 0 {
		argv = append(argv, "--map-root-user")
	}
	return argv
}

// aloneEnv is set in the process that runs one cell alone.
const aloneEnv = "HOST_TEST_ALONE"

// Alone reports whether this process runs one test alone, beside the process that runs the others.
func Alone() bool { return os.Getenv(aloneEnv) != "" }

// runAlone runs the test once more in a process of its own.
func runAlone(t *testing.T, s space) {
	t.Helper()
	var pattern []string
	for name := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(name)+"$")
	}
	argv := append(s.enter(), os.Args[0], "-test.run="+strings.Join(pattern, "/"), "-test.v", "-test.timeout=5m")
	if testing.Short() {
		argv = append(argv, "-test.short")
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), aloneEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v (unshare needs root, or user namespaces):\n%s", argv, err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Fatalf("it was not run:\n%s", out)
	}
	t.Logf("alone:\n%s", out)
}

// OwnPIDs runs the test once more in a process of its own with servers of its own (the setup functions of Main), where no
// process of anything else is seen. It reports whether this is that process; otherwise the test is over.
func OwnPIDs(t *testing.T) bool {
	t.Helper()
	if Alone() {
		return true
	}
	runAlone(t, ownPIDs)
	return false
}
