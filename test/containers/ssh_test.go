package containers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

const farHost = "gpu-host" // of the testbed's ssh_config

// far is this machine at the other end of a real sshd. What is kept there lies in a folder of its own.
type far struct {
	dir, agent, config string
}

func (f far) work() string { return filepath.Join(f.dir, "work") }

// newFar builds the agent and starts the server, whose sessions know the runtime as the tests themselves do.
func newFar(t *testing.T) far {
	t.Helper()
	need(t)
	dir := t.TempDir()
	f := far{dir: dir, agent: filepath.Join(dir, "sgtune-agent"), config: filepath.Join(dir, "sshd", "ssh_config")}
	build := exec.Command("go", "build", "-o", f.agent, "sgtune/cmd/sgtune-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v: %s", err, out)
	}
	port := 20000 + rand.IntN(1000)*10
	testbed := func(verb string) error {
		cmd := exec.Command("../testbed/sshd.sh", verb)
		cmd.Env = append(os.Environ(), "SSHD_TB_DIR="+filepath.Join(dir, "sshd"), fmt.Sprint("SSHD_TB_PORT=", port))
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("sshd.sh %s: %w: %s", verb, err, out)
		}
		return err
	}
	if err := testbed("start"); err != nil {
		t.Fatal(err) // openssh-server is needed: test/testbed/sshd.sh install
	}
	t.Cleanup(func() {
		if err := testbed("purge"); err != nil {
			t.Error(err)
		}
	})
	if err := f.login(); err != nil {
		t.Fatal(err)
	}
	return f
}

// login gives the sessions of the server their environment, as a user's own profile would.
func (f far) login() error {
	words := "export XDG_STATE_HOME=" + filepath.Join(f.dir, "state")
	for _, name := range []string{"CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", hosttest.RuntimeDirEnv, "PATH"} {
		if v := os.Getenv(name); v != "" {
			words += " " + name + "=" + v
		}
	}
	key, err := os.ReadFile(filepath.Join(f.dir, "sshd", "id.pub"))
	if err != nil {
		return err
	}
	line := `command="` + words + `; exec sh -c \"$SSH_ORIGINAL_COMMAND\"" ` + string(key)
	return os.WriteFile(filepath.Join(f.dir, "sshd", "authorized_keys"), []byte(line), 0o600)
}

func (f far) host(t *testing.T) *host.Remote {
	t.Helper()
	link, err := host.NewSSH(host.SSHOptions{
		Address: farHost, Config: f.config, Work: f.work(),
		Agent: func(string) ([]byte, string, error) {
			b, err := os.ReadFile(f.agent)
			sum := sha256.Sum256(b)
			return b, hex.EncodeToString(sum[:]), err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := host.NewRemote(host.RemoteOptions{Link: link})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestOverSSH: a container on the other side ends as it should, by itself, by TERM, and after its holder was killed.
func TestOverSSH(t *testing.T) {
	h := newFar(t).host(t)
	command := func(words ...string) host.Command {
		return host.Command{
			Argv: append([]string{"/sim"}, words...), Marker: hosttest.NewMarker(), LogPath: filepath.Join(t.TempDir(), "log"),
			Container: &host.Container{Runtime: bed.runtime, Image: image},
		}
	}
	if e := hosttest.Wait(t, start(t, h, command("exit", "3"))); e.Code != 3 || !e.Known {
		t.Errorf("%+v", e)
	}
	p := start(t, h, command("polite"))
	hosttest.FirstLine(t, p)
	hosttest.Stop(t, p, 30*time.Second)
	if e := hosttest.Wait(t, p); e.Code != 5 {
		t.Errorf("%+v", e)
	}
	if b, err := p.Log(t.Context(), 0, 100); string(b) != "ready\nbye\n" || err != nil {
		t.Errorf("log %q, %v", b, err)
	}
	c := command("stubborn")
	p = start(t, h, c)
	hosttest.FirstLine(t, p)
	if err := syscall.Kill(-p.ID().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	hosttest.Wait(t, p)
	list, err := h.Find(t.Context(), c.Marker)
	if err != nil || !slices.ContainsFunc(list, func(p host.Process) bool { return p.ID().Container != "" }) {
		t.Fatalf("%d found, %v", len(list), err)
	}
	for _, p := range list {
		hosttest.Stop(t, p, 0)
	}
	if left := containers(t, c.Marker); left != "" {
		t.Errorf("left: %s", left)
	}
}

// TestContainersOverSSH is a whole study on a host behind ssh whose servers run in containers there.
func TestContainersOverSSH(t *testing.T) {
	f := newFar(t)
	n := newNight(t, "far", "", fmt.Sprintf("host: {kind: ssh, address: %s, ssh_config: %s, work_dir: %s}", farHost, f.config, f.work()), short)
	n.program = filepath.Join(f.dir, "sgtune")
	if err := hosttest.BuildSgtune("../..", n.program, f.agent); err != nil {
		t.Fatal(err)
	}
	checked := n.sgtune(0, "check", n.file())
	for _, want := range []string{"by its memory limit", "Ready to leave alone: yes"} {
		if !strings.Contains(checked, want) {
			t.Errorf("check lacks %q:\n%s", want, checked)
		}
	}
	n.tune(2)
	if log := n.log(0); !strings.Contains(log, "fired up") {
		t.Errorf("the baseline's log has %d bytes", len(log))
	}
	for _, pattern := range []string{"state/sgtune/*.containers/*", "state/sgtune/lease/*", "work/run/*", "work/lease/*"} {
		if left, _ := filepath.Glob(filepath.Join(f.dir, pattern)); len(left) > 0 {
			t.Errorf("left on the host: %v", left)
		}
	}
}
