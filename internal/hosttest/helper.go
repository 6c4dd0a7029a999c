package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
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

// HelperEnv makes the test binary play one of the helper programs instead of running tests.
const HelperEnv = "HOST_TEST_HELPER"

// lifetime ends helpers that a broken test has left behind.
const lifetime = 5 * time.Minute

// Main is the body of TestMain in a package that uses the suite. newHost makes a host of a kind in a folder, for
// helper programs that play another sgtune. Each setup runs before the tests and returns what is done after them.
func Main(m *testing.M, newHost func(kind, dir string) host.Host, setup ...func() (func(), error)) {
	if IsRuntime() {
		os.Exit(RuntimeMain())
	}
	if name := os.Getenv(HelperEnv); name != "" && !isAgent() {
		exitWith(helper(name, os.Args[1:], newHost))
	}
	if isAgent() {
		exitWith(agentMain(os.Args[2:]))
	}
	// The race detector makes every program wait a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		exitWith(err)
	}
	// Orphans become our children and, as nobody waits for them, zombies that stay: the pid 1 of
	// many a container behaves so, and everything must count such processes as gone.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		exitWith(fmt.Errorf("become subreaper: %w", err))
	}
	os.Exit(runTests(m, setup))
}

func runTests(m *testing.M, setup []func() (func(), error)) int {
	for _, f := range setup {
		undo, err := f()
		defer undo()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
	}
	defer tellFailures(os.Stderr)
	return m.Run()
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

func helper(name string, args []string, newHost func(kind, dir string) host.Host) error {
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
	case "files": // args: what it has open
		return holdFiles(args)
	case "listen":
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println(ln.Addr().(*net.TCPAddr).Port)
		return greet(ln)
	case "http": // answers every request
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println(ln.Addr().(*net.TCPAddr).Port)
		return http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("well")) }))
	case "renamed": // does what setproctitle does to the environment, beside a child that does not
		child := exec.Command("sleep", "300")
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
		return controller(args, newHost(args[0], args[1]))
	case "marked-controller": // the same arguments; its own environment is marked, too
		return markedController(args, newHost(args[0], args[1]))
	case "holder": // args: kind, folder; holds the lease and nothing else
		return holder(newHost(args[0], args[1]))
	case "probe":
		return host.ProbeMain(os.Stdout, os.Getenv("SGTUNE_NVML_LIBRARY"))
	case "energy":
		return host.EnergyMain(os.Stdout, os.Getenv("SGTUNE_NVML_LIBRARY"))
	}
	return nil
}

// greet says hello to whoever connects.
func greet(ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
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
		cmd.Env = append(os.Environ(), HelperEnv+"=stubborn")
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

func controller(args []string, h host.Host) error {
	ctx := context.Background()
	if _, err := h.Lease(ctx, "study of the dead"); err != nil {
		return err
	}
	p, err := h.Start(ctx, host.Command{
		Argv: []string{os.Args[0]}, Env: map[string]string{HelperEnv: "tree"}, LogPath: args[2], Marker: args[3],
	})
	if err != nil {
		return err
	}
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		b, err := p.Log(ctx, 0, 1000)
		if err != nil {
			return err
		}
		if bytes.ContainsRune(b, '\n') {
			break
		}
		if time.Since(begin) > patience {
			return errors.New("the tree says nothing")
		}
	}
	fmt.Println(p.ID().PID)
	time.Sleep(lifetime)
	return nil
}

// markedController starts one process, finds everything of its own marker and stops it.
func markedController(args []string, h host.Host) error {
	ctx := context.Background()
	p, err := h.Start(ctx, host.Command{
		Argv: []string{os.Args[0]}, Env: map[string]string{HelperEnv: "sleep"}, LogPath: args[2], Marker: args[3],
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
