package host_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// TestGuardOfAKeeper: the keeper of a guarded process ends it in time and says why; without a reason it says that too.
func TestGuardOfAKeeper(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		script string
		limits host.GuardLimits
		want   host.GuardReason
	}{
		{"time", "sleep 60", host.GuardLimits{MinFree: -1, TimeLimit: 300 * time.Millisecond}, host.GuardTimeLimit},
		{"memory", "sleep 60", host.GuardLimits{MinFree: 1 << 50}, host.GuardMemory},
		{"by itself", "sleep 0.3", host.GuardLimits{MinFree: -1}, host.GuardOver},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := remote(t)
			p, err := f.Host.Start(t.Context(), host.Command{Argv: []string{"sh", "-c", c.script}, Marker: f.Marker, Guard: &c.limits})
			if err != nil {
				t.Fatal(err)
			}
			hosttest.Wait(t, p)
			g, ok := p.(interface {
				Guarded(ctx context.Context) (*host.GuardVerdict, error)
			})
			if !ok {
				t.Fatalf("%T tells nothing of a guard", p)
			}
			v, err := g.Guarded(t.Context())
			if err != nil || v == nil {
				t.Fatal(v, err)
			}
			if killed := p.Exit().Signal != 0; v.Reason != c.want || killed != c.want.Killed() || v.PID != p.ID().PID {
				t.Errorf("%+v, exit %+v", v, p.Exit())
			}
			if err := host.Forget(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCopy: a file arrives once, whole, and under its checksum.
func TestCopy(t *testing.T) {
	t.Parallel()
	f := remote(t)
	r, ok := f.Host.(*host.Remote)
	if !ok {
		t.Fatalf("%T", f.Host)
	}
	for name, size := range map[string]int{"empty.jsonl": 0, "small.jsonl": 10, "two pieces.jsonl.gz": 1<<20 + 7, "whole pieces": 2 << 20} {
		want := make([]byte, size)
		_, _ = rand.Read(want) // never fails
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		there, err := r.Copy(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(there)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, size)
		}
		before, err := os.Stat(there)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := r.Copy(t.Context(), path); err != nil || again != there {
			t.Errorf("again: %s, %v", again, err)
		}
		if after, err := os.Stat(there); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was sent again: %v", name, err)
		}
		if err := os.WriteFile(there, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Copy(t.Context(), path); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(there); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: a damaged copy was not replaced: %v", name, err)
		}
	}
	if _, err := r.Clean(t.Context(), false); err != nil {
		t.Error(err)
	}
	if _, err := r.Copy(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was copied")
	}
}
