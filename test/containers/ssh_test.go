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
	"syscall"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// overSSH is this machine as a host at the other end of a real sshd.
func overSSH(t *testing.T) *host.Remote {
	t.Helper()
	need(t)
	dir := t.TempDir()
	agent := filepath.Join(dir, "sgtune-agent")
	build := exec.Command("go", "build", "-o", agent, "sgtune/cmd/sgtune-agent")
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
	env := map[string]string{"XDG_STATE_HOME": filepath.Join(dir, "state")}
	for _, name := range []string{"CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", hosttest.RuntimeDirEnv, "PATH"} {
		if v := os.Getenv(name); v != "" {
			env[name] = v
		}
	}
	link, err := host.NewSSH(host.SSHOptions{
		Address: "gpu-host", Config: filepath.Join(dir, "sshd", "ssh_config"), Work: filepath.Join(dir, "work"), Env: env,
		Agent: func(string) ([]byte, string, error) {
			b, err := os.ReadFile(agent)
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
	h := overSSH(t)
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
