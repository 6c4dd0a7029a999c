package hosttest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
)

// runs is the folder on the host in which logs lie, and the run folders of keepers.
func (f Fixture) runs() string {
	if f.Kept {
		return filepath.Join(f.Dir, "work", "run")
	}
	return filepath.Join(f.Dir, "logs")
}

// smallDisk mounts a file system of 2 MB where the host's logs lie.
func smallDisk(t *testing.T, f Fixture) {
	t.Helper()
	dir := f.runs()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=700"); err != nil {
		t.Fatalf("mount a file system of 2 MB: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// free is how many bytes can still be written to the host's small disk.
func (f Fixture) free(t *testing.T) uint64 {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(f.runs(), &s); err != nil {
		t.Fatal(err)
	}
	return s.Bavail * uint64(s.Bsize)
}

// diskFull has a server fill the disk with its log. It lives on, and so does what else runs; how both end is known.
// Another start fails in words, where it needs the disk, and leaves nothing behind.
func diskFull(t *testing.T, f Fixture) {
	smallDisk(t, f)
	log := func(name string) string {
		if f.Kept {
			return "" // theirs lie on the host, anyway
		}
		return filepath.Join(f.runs(), name)
	}
	stubborn := f.Launch(t, host.Command{
		Argv: []string{os.Args[0]}, Env: map[string]string{HelperEnv: "stubborn"}, Marker: NewMarker(), LogPath: log("stubborn"),
	})
	FirstLine(t, stubborn)
	goOn := filepath.Join(f.Dir, "go")
	p := f.Launch(t, host.Command{
		Argv:   []string{"sh", "-c", "echo first; yes | head -c 4000000; while [ ! -e " + goOn + " ]; do sleep 0.02; done; echo last; exit 7"},
		Marker: f.Marker, LogPath: log("filler"),
	})
	eventually(t, "the disk is full", func() bool { return f.free(t) == 0 })
	if line := FirstLine(t, p); line != "first" || closed(p.Done()) {
		t.Errorf("log begins with %q; ended: %v", line, closed(p.Done()))
	}
	third := host.Command{Argv: []string{"sleep", "60"}, Marker: NewMarker(), LogPath: log("third")}
	if q, err := f.Start(t.Context(), third); err == nil {
		Stop(t, q, 0)
	} else if !strings.Contains(err.Error(), "no space left") {
		t.Errorf("start on a full disk: %v", err)
	}
	if list, err := f.Find(t.Context(), third.Marker); err != nil || len(list) != 0 {
		t.Errorf("%d processes of a start on a full disk, %v", len(list), err)
	}
	Stop(t, stubborn, 100*time.Millisecond)
	if e := Wait(t, stubborn); e.Signal != 9 || !e.Known {
		t.Errorf("stopped on a full disk: %+v", e)
	}
	put(t, f.Dir, "go", "")
	if e := Wait(t, p); e.Code != 7 || !e.Known {
		t.Errorf("ended on a full disk: %+v", e)
	}
	makeRoom(t, f.runs())
	begin := time.Now()
	q, err := f.Start(t.Context(), third)
	if err != nil {
		t.Fatalf("with room again: %v", err)
	}
	recovered(t, begin)
	Stop(t, q, 0)
}

// makeRoom does what a person does about a full disk.
func makeRoom(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Size() > 100<<10 {
			err = os.Truncate(path, 0)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// oddDate puts a date program into the folder that goes with its clock, for machines whose scripts find it first.
func oddDate(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "bin"), "date", `#!/bin/sh
case "$(cat "`+filepath.Join(dir, sleptFile)+`" 2>/dev/null)" in
8h) exec /bin/date -d '8 hours' "$@" ;;
-8h) exec /bin/date -d '-8 hours' "$@" ;;
esac
exec /bin/date "$@"
`)
}

// clockJump puts the time of day forward by a night, and then back: nothing ends by that, no grace is cut short or
// drawn out, and the lease is kept.
func clockJump(t *testing.T, f Fixture) {
	release, err := f.Lease(t.Context(), "night one")
	if err != nil {
		t.Fatal(err)
	}
	server := f.Helper(t, "sleep")
	FirstLine(t, server)
	done, last := server.Done(), time.Time{}
	for _, slept := range []time.Duration{8 * time.Hour, -8 * time.Hour} {
		put(t, f.Dir, sleptFile, strings.TrimSuffix(slept.String(), "0m0s"))
		beats(t, f, time.Now().Add(slept))
		if c := Clock(f.Dir, 1); slept > 0 && c.Asleep() != slept {
			t.Errorf("the clock tells of %s, want %s", c.Asleep(), slept)
		} else {
			c.CatchUp() // as the loop of a study does
		}
		begin := time.Now()
		if _, err := f.Usage(t.Context()); err != nil {
			t.Error(err)
		}
		recovered(t, begin)
		if f.Kept {
			time.Sleep(1200 * time.Millisecond) // a holder of a lease looks each second
		}
		beside := f
		beside.Marker = NewMarker()
		p := beside.Helper(t, "stubborn")
		FirstLine(t, p)
		asked := time.Now()
		Stop(t, p, 300*time.Millisecond)
		if took := time.Since(asked); took < 300*time.Millisecond || took > patience {
			t.Errorf("slept %s: a grace of 300 ms took %s", slept, took)
		}
		e := Wait(t, p)
		if e.Signal != 9 || !e.Known || e.At.Before(last) {
			t.Errorf("slept %s: %+v, the one before ended at %s", slept, e, last)
		}
		last = e.At
		if _, err := f.open(t, f.Dir).Lease(t.Context(), "night two"); !errors.Is(err, host.ErrLeased) {
			t.Errorf("slept %s: the lease is free: %v", slept, err)
		}
		if closed(done) {
			t.Fatalf("slept %s: the server ended: %+v", slept, server.Exit())
		}
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// beats gives the signs of life on the host the time that a jumped clock would have given them.
func beats(t *testing.T, f Fixture, at time.Time) {
	t.Helper()
	err := filepath.WalkDir(f.Dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "beat" {
			err = os.Chtimes(path, at, at)
		}
		if errors.Is(err, fs.ErrNotExist) { // a file that was there for a moment
			return nil
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
