package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

func suite() hosttest.Suite {
	return hosttest.Suite{
		Kind: "slurm", Kept: true, Elsewhere: true, New: func(dir string) host.Host { return newHost("slurm", dir) },
		Way: hosttest.Way{Cut: cut, Away: 5 * time.Second, Restart: restart}, Tell: controllerSaid,
	}
}

// gate is the way to Slurm's programs, as long as it is open.
type gate struct {
	host.SlurmHere
	closed string // a file that closes it
}

var errGate = errors.New("no route to the login node")

func (g gate) shut() bool {
	_, err := os.Stat(g.closed)
	return err == nil
}

// RunCommand implements host.SlurmRunner.
func (g gate) RunCommand(ctx context.Context, argv []string, stdin string) (string, int, error) {
	if g.shut() {
		return "", 0, errGate
	}
	return g.SlurmHere.RunCommand(ctx, argv, stdin)
}

// StartCommand implements host.SlurmLogin.
func (g gate) StartCommand(argv []string) (*host.LinkConn, error) {
	if g.shut() {
		return nil, errGate
	}
	return g.SlurmHere.StartCommand(argv)
}

// login is the way to Slurm of a folder, whose jobs believe what the folder says of their machine.
func login(dir string) gate {
	env := []string{"XDG_STATE_HOME=" + dir}
	if file := hosttest.BootIDFile(dir); file != "" {
		env = append(env, host.BootIDEnv+"="+file)
	}
	if bin := filepath.Join(dir, "bin"); isFolder(bin) { // with a date of its own
		env = append(env, "PATH="+bin+":"+os.Getenv("PATH"))
	}
	return gate{host.SlurmHere{Env: env}, filepath.Join(dir, "cut")}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// cut closes the way to the login node and kills the steps over which the node is reached.
func cut(t *testing.T, f hosttest.Fixture) (mend func()) {
	t.Helper()
	file := filepath.Join(f.Dir, "cut")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	of, ok := f.Host.(ending)
	if !ok {
		t.Fatalf("a %T", f.Host)
	}
	killSteps(t, of.Job().ID)
	return func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}

// restart ends the controller and starts it.
func restart(t *testing.T, _ hosttest.Fixture) {
	t.Helper()
	stopController(t)
	if err := testbed("start"); err != nil {
		t.Fatal(err)
	}
}

// stopController ends the controller as its own service file does: a killed one forgets what it has not saved yet.
func stopController(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(bed("slurm/run/slurmctld.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the controller ends", time.Minute, func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
}
