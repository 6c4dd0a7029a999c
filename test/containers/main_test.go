package containers

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

const (
	pathEnv = "SGTUNE_CONTAINERS"
	image   = "localhost/sgtune-sim:1"
)

// bed is what all tests share.
var bed struct {
	why     string // why there are no tests, "" when there are
	dir     string
	real    bool   // a real runtime
	runtime string // what a study calls it: podman
	program string // the built sgtune
}

func TestMain(m *testing.M) {
	hosttest.Main(m, func(_, dir string) host.Host { return host.NewLocal(host.LocalOptions{StateDir: dir}) }, setup)
}

// setup builds sgtune and the image, and finds out which runtime there is.
func setup() (func(), error) {
	wanted := os.Getenv(pathEnv)
	if flag.Parse(); testing.Short() || wanted == "" {
		bed.why = "containers: make test-containers runs it"
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "sgtune-containers-")
	if err != nil {
		return func() {}, err
	}
	bed.dir, bed.program, bed.runtime = dir, filepath.Join(dir, "sgtune"), "podman"
	undo := func() { purge(dir) }
	sim := filepath.Join(dir, "image", "sim")
	for _, b := range []struct{ out, from, cgo string }{{bed.program, "sgtune/cmd/sgtune", "1"}, {sim, "sgtune/test/containers/image", "0"}} {
		cmd := exec.Command("go", "build", "-o", b.out, b.from)
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+b.cgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			return undo, fmt.Errorf("build %s: %w: %s", b.from, err, out)
		}
	}
	if err := os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")); err != nil {
		return undo, err
	}
	trouble := errors.New("it was not wanted")
	if wanted != "fake" {
		trouble = podman(dir)
	}
	switch {
	case trouble == nil:
		bed.real = true
		fmt.Println("containers: a real runtime:", version())
		return undo, nil
	case wanted == "podman":
		return undo, fmt.Errorf("containers: %s=podman, but podman runs no container here: %w", pathEnv, trouble)
	case wanted != "try" && wanted != "fake":
		return undo, fmt.Errorf("containers: %s is %q; podman, fake and try are known", pathEnv, wanted)
	}
	fmt.Println("containers: the FAKE runtime, nothing below ran in a container; podman:", trouble)
	path, containers, err := hosttest.FakeRuntime(dir, image, map[string]string{"/sim": sim})
	return undo, errors.Join(err, os.Setenv(hosttest.RuntimeDirEnv, containers), os.Setenv("PATH", path+":"+os.Getenv("PATH")))
}

// podman prepares a podman with folders of its own and runs one container of the image.
func podman(dir string) error {
	if _, err := exec.LookPath("podman"); err != nil {
		return err
	}
	// Low limits for containers: podman's own may be above what this machine allows, and podman lowers its own first.
	var files, processes unix.Rlimit
	err := errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &files), unix.Getrlimit(unix.RLIMIT_NPROC, &processes))
	limit := func(l unix.Rlimit) uint64 { return min(l.Cur, 4096) }
	oci := "crun"
	if _, err := exec.LookPath("runc"); err == nil { // crun 1.8 refuses machines with both versions of cgroups
		oci = "runc"
	}
	conf := fmt.Sprintf("[containers]\ndefault_ulimits = [\"nofile=%d:%d\", \"nproc=%d:%d\"]\nlog_driver = \"k8s-file\"\n"+
		"[engine]\nruntime = %q\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\ntmp_dir = %q\n",
		limit(files), limit(files), limit(processes), limit(processes), oci, filepath.Join(dir, "podman", "tmp"))
	storage := fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", filepath.Join(dir, "podman", "root"), filepath.Join(dir, "podman", "run"))
	file := "FROM scratch\nCOPY sim /sim\n"
	for name, text := range map[string]string{"containers.conf": conf, "storage.conf": storage, "image/Containerfile": file} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for name, file := range map[string]string{"CONTAINERS_CONF": "containers.conf", "CONTAINERS_STORAGE_CONF": "storage.conf"} {
		err = errors.Join(err, os.Setenv(name, filepath.Join(dir, file)))
	}
	if err != nil {
		return err
	}
	for _, words := range [][]string{
		{"build", "--isolation", "chroot", "--network", "host", "-t", image, filepath.Join(dir, "image")},
		{"run", "--rm", "--network", "host", image, "/sim", "exit", "0"},
	} {
		if out, err := exec.Command("podman", words...).CombinedOutput(); err != nil {
			return fmt.Errorf("podman %s: %w: %s", words[0], err, strings.Join(strings.Fields(string(out)), " "))
		}
	}
	return nil
}

func version() string {
	out, err := exec.Command("podman", "info", "--format", "podman {{.Version.Version}}, {{.Host.OCIRuntime.Name}}, cgroups {{.Host.CgroupsVersion}}, {{.Store.GraphDriverName}}").Output()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}

// purge removes everything, the image's files through podman, which may have them as another user.
func purge(dir string) {
	if bed.real {
		_ = exec.Command("podman", "rm", "-f", "-a").Run()
		_ = exec.Command("podman", "rmi", "-f", "-a").Run()
	}
	_ = os.RemoveAll(dir)
}

// need skips a test that cannot run here.
func need(t *testing.T) {
	t.Helper()
	if bed.why != "" {
		t.Skip(bed.why)
	}
}
