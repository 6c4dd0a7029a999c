package hosts

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// oddWord has everything that a shell would like to have its way with.
const oddWord = "it's a \"$HOME\" `id` $(id) \\ * ?\nsecond line\t; & | < > # ! ~ ünïcödé 🚀"

// Login shells of several kinds, one of which talks: all start the agent and what it is asked for, unchanged.
func TestLoginShells(t *testing.T) {
	need(t)
	for _, address := range []string{"chatty", "dash", "bash"} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			s := suite(address)
			f := hosttest.NewFixture(t, s)
			p := f.Launch(t, host.Command{
				Argv: []string{"printf", "%s|%s|%s|", oddWord, "", oddWord}, Env: map[string]string{"ODD": oddWord}, Marker: f.Marker,
			})
			if e := hosttest.Wait(t, p); e.Code != 0 {
				t.Fatalf("%+v", e)
			}
			b, err := p.Log(t.Context(), 0, 10000)
			if diff := cmp.Diff(oddWord+"||"+oddWord+"|", string(b)); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

// The work folder and the agent's environment go through the shell: their quoting is ours.
func TestQuoting(t *testing.T) {
	need(t)
	o := options("gpu-host", t.TempDir())
	o.Work = filepath.Join(t.TempDir(), oddWord)
	o.Env["ODD"] = oddWord
	r := newRemote(o)
	defer r.Close()
	p, err := r.Start(t.Context(), host.Command{Argv: []string{"sh", "-c", `printf %s "$ODD"`}})
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Wait(t, p)
	if b, err := p.Log(t.Context(), 0, 10000); string(b) != oddWord || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if list, err := os.ReadDir(o.Work); err != nil || len(list) != 2 { // bin, run
		t.Errorf("%v, %v", list, err)
	}
}

// Where the agent comes to lie: made private, old ones replaced, a damaged one healed, the same one left alone.
func TestAgentIsPlaced(t *testing.T) {
	need(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	under, err := os.MkdirTemp(home, ".sgtune-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(under)
	for _, c := range []struct{ name, work, lies string }{
		{"absolute", under + "/a/b", under + "/a/b"},
		{"tilde", "~/" + filepath.Base(under) + "/c", under + "/c"},
		{"relative", filepath.Base(under) + "/d", under + "/d"},
	} {
		o := options("gpu-host", t.TempDir())
		o.Work = c.work
		bin := filepath.Join(c.lies, "bin")
		for round, spoil := range []func(string) error{
			nil,
			func(string) error { return os.WriteFile(filepath.Join(bin, "sgtune-agent-0123"), []byte("old"), 0o700) },
			func(file string) error { return os.Truncate(file, 1000) },
			func(string) error { return os.WriteFile(filepath.Join(bin, ".new-4194304"), []byte("half"), 0o700) },
		} {
			if spoil != nil {
				if err := spoil(only(t, bin)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := try(t, o); err != nil {
				t.Fatalf("%s, round %d: %v", c.name, round, err)
			}
			if round < 3 { // half a copy goes with the next one
				only(t, bin)
			}
		}
		for _, dir := range []string{bin, filepath.Join(c.lies, "run")} {
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, %v", dir, info.Mode(), err)
			}
		}
	}
}

// only is the one file of a folder.
func only(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v: want one file", list, err)
	}
	return filepath.Join(dir, list[0].Name())
}

// A connection that was made is not made again for the same agent: the file stays the same one.
func TestAgentIsCopiedOnce(t *testing.T) {
	need(t)
	o := options("gpu-host", t.TempDir())
	o.Work = t.TempDir()
	var files [2]os.FileInfo
	for i := range files {
		if _, err := try(t, o); err != nil {
			t.Fatal(err)
		}
		var err error
		if files[i], err = os.Stat(only(t, filepath.Join(o.Work, "bin"))); err != nil {
			t.Fatal(err)
		}
	}
	if !os.SameFile(files[0], files[1]) || files[0].ModTime() != files[1].ModTime() {
		t.Error("copied again")
	}
}

func TestUnusableFolders(t *testing.T) {
	need(t)
	mount := func(t *testing.T, options string) string {
		t.Helper()
		dir := t.TempDir()
		flags := uintptr(0)
		if options == "noexec" {
			flags, options = syscall.MS_NOEXEC, ""
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
			t.Skip("cannot mount a tmpfs here: " + err.Error())
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		return dir
	}
	for _, c := range []struct {
		name   string
		folder func(*testing.T) string
		words  []string
	}{
		{"not writable", func(*testing.T) string { return "/proc/sys/sgtune" }, []string{"cannot write to /proc/sys/sgtune/bin", "work folder"}},
		{"below a file", func(t *testing.T) string {
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return file + "/work"
		}, []string{"cannot write to"}},
		{"a link", func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "bin")); err != nil {
				t.Fatal(err)
			}
			return dir
		}, []string{"belongs to somebody else, or is a link"}},
		{"noexec", func(t *testing.T) string { return mount(t, "noexec") }, []string{"cannot be run there", "noexec"}},
		{"too small", func(t *testing.T) string { return mount(t, "size=2m") }, []string{"cannot store the agent", "is the disk full?"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options("gpu-host", t.TempDir())
			o.Work = c.folder(t)
			took, err := try(t, o)
			oneLine(t, err, append(c.words, o.Work)...)
			if took > 20*time.Second {
				t.Errorf("told after %s", took)
			}
		})
	}
}
