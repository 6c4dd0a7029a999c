package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sgtune/host"
)

// helperEnv makes the test binary play one of the programs of helper instead of running tests.
const helperEnv = "HOST_TEST_HELPER"

// lifetime ends helpers that a broken test has left behind.
const lifetime = 2 * time.Minute

func TestMain(m *testing.M) {
	if name := os.Getenv(helperEnv); name != "" {
		if err := helper(name, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	// The race detector makes every program wait a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Orphans become our children and, as nobody waits for them, zombies that stay: the pid 1 of
	// many a container behaves so, and everything must count such processes as gone.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "become subreaper:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func helper(name string, args []string) error {
	switch name {
	case "argv": // prints what it was given
		return json.NewEncoder(os.Stdout).Encode(map[string]any{
			"argv": args, "marker": os.Getenv(host.MarkerEnv), "claims": os.Getenv("FAKENVML_CLAIMS"),
		})
	case "sleep":
		fmt.Println("ready")
		time.Sleep(lifetime)
	case "stubborn": // ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(lifetime)
	case "tree": // a child in the group and one in a session of its own, both stubborn
		return tree(true)
	case "orphans": // the same, but the parent ends at once
		return tree(false)
	case "listen":
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println(ln.Addr().(*net.TCPAddr).Port)
		time.Sleep(lifetime)
	case "renamed": // does what setproctitle does to the environment, beside a child that does not
		child := exec.Command("sleep", "120")
		if err := child.Start(); err != nil {
			return err
		}
		fmt.Println(child.Process.Pid)
		if err := eraseEnviron(); err != nil {
			return err
		}
		fmt.Println("renamed")
		time.Sleep(lifetime)
	case "controller": // args: kind, folder, log, marker; holds the lease and runs a marked tree
		return controller(args)
	case "marked-controller": // the same arguments; its own environment is marked, too
		return markedController(args)
	case "probe":
		return host.ProbeMain(os.Stdout, os.Getenv("SGTUNE_NVML_LIBRARY"))
	case "energy":
		return host.EnergyMain(os.Stdout, os.Getenv("SGTUNE_NVML_LIBRARY"))
	}
	return nil
}

// eraseEnviron overwrites the memory that /proc/PID/environ shows.
func eraseEnviron() error {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	start, err1 := strconv.ParseInt(f[50-3], 10, 64) // field 50, env_start
	end, err2 := strconv.ParseInt(f[51-3], 10, 64)
	mem, err3 := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	defer mem.Close()
	_, err = mem.WriteAt(make([]byte, end-start), start)
	return err
}

func tree(stay bool) error {
	var pids []int
	for _, setsid := range []bool{false, true} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), helperEnv+"=stubborn")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
		ready, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if _, err := ready.Read(make([]byte, 16)); err != nil {
			return err
		}
		pids = append(pids, cmd.Process.Pid)
	}
	if err := json.NewEncoder(os.Stdout).Encode(pids); err != nil || !stay {
		return err
	}
	signal.Ignore(syscall.SIGTERM)
	time.Sleep(lifetime)
	return nil
}

func controller(args []string) error {
	h := newHost(args[0], args[1])
	ctx := context.Background()
	if _, err := h.Lease(ctx, "study of the dead"); err != nil {
		return err
	}
	p, err := h.Start(ctx, host.Command{
		Argv: []string{os.Args[0]}, Env: map[string]string{helperEnv: "tree"}, LogPath: args[2], Marker: args[3],
	})
	if err != nil {
		return err
	}
	for {
		b, err := p.Log(ctx, 0, 1000)
		if err != nil {
			return err
		}
		if bytes.ContainsRune(b, '\n') {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Println(p.ID().PID)
	time.Sleep(lifetime)
	return nil
}

// markedController starts one process, finds everything of its own marker and stops it.
func markedController(args []string) error {
	h := newHost(args[0], args[1])
	ctx := context.Background()
	p, err := h.Start(ctx, host.Command{
		Argv: []string{os.Args[0]}, Env: map[string]string{helperEnv: "sleep"}, LogPath: args[2], Marker: args[3],
	})
	if err != nil {
		return err
	}
	list, err := h.Find(ctx, "")
	if err != nil {
		return err
	}
	n := 0
	for _, q := range list {
		if q.ID().Marker != args[3] {
			continue // of a test that runs beside this one
		}
		n++
		if err := q.Stop(ctx, 0); err != nil {
			return err
		}
	}
	<-p.Done()
	fmt.Printf("found %d, stopped %d\n", n, n)
	return p.Stop(ctx, 0)
}

// newHost makes a host of a kind in a folder; two with one folder are one host.
func newHost(kind, dir string) host.Host {
	if kind == "simulated" {
		return host.NewSimulated(host.SimulatedOptions{Dir: dir, Clock: host.NewClock(time.Now(), 50)})
	}
	return host.NewLocal(host.LocalOptions{StateDir: dir})
}
