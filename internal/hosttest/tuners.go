package hosttest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/host"
)

// anotherTuner is a sgtune in a process of its own that has the lease of the folder's host.
func anotherTuner(t *testing.T, f Fixture) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], f.Kind, f.Dir)
	cmd.Env = append(os.Environ(), HelperEnv+"=holder")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other sgtune said %q, %v", line, err)
	}
	return cmd
}

// kill ends a child the hard way; again, it does nothing.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// holder is the helper behind anotherTuner.
func holder(h host.Host) error {
	if _, err := h.Lease(context.Background(), "night of another"); err != nil {
		return err
	}
	fmt.Println("held")
	time.Sleep(lifetime)
	return nil
}

// saysSince reports whether a refusal tells since when somebody has the lease: at that time or later, and not in the future.
func saysSince(refusal error, earliest time.Time) bool {
	_, text, _ := strings.Cut(refusal.Error(), "since ")
	const format = "2006-01-02 15:04:05"
	at, err := time.ParseInLocation(format, text[:min(len(text), len(format))], time.Local)
	return err == nil && !at.Before(earliest.Truncate(time.Second)) && !at.After(time.Now())
}

// twoTuners has one sgtune refused by another one, with its name and since when, and then two ask at the same time.
func twoTuners(t *testing.T, f Fixture) {
	before := time.Now()
	first := anotherTuner(t, f)
	_, err := f.Lease(t.Context(), "night two")
	if !errors.Is(err, host.ErrLeased) {
		t.Fatalf("two sgtunes at once: %v", err)
	}
	for _, want := range []string{`"night of another"`, fmt.Sprintf("pid %d", first.Process.Pid)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal %q lacks %q", err, want)
		}
	}
	if !saysSince(err, before) {
		t.Errorf("the refusal %q does not say since when: it was after %s", err, before)
	}
	kill(first)
	begin := time.Now()
	var releases [2]func() error
	var refused [2]error
	var both sync.WaitGroup
	for i := range releases {
		h := f.open(t, f.Dir)
		both.Go(func() { releases[i], refused[i] = h.Lease(t.Context(), fmt.Sprint("night ", i)) })
	}
	both.Wait()
	recovered(t, begin)
	got := 0
	for i, release := range releases {
		if release == nil {
			if !errors.Is(refused[i], host.ErrLeased) {
				t.Error(refused[i])
			}
			continue
		}
		got++
		if err := release(); err != nil {
			t.Error(err)
		}
	}
	if got != 1 {
		t.Errorf("%d of two got the lease: %v", got, refused)
	}
}
