package slurm

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// sgtune on a laptop, Slurm's programs on a login node: the same, through a real ssh server.
func TestThroughSSH(t *testing.T) {
	need(t)
	if _, err := os.Stat("/usr/sbin/sshd"); err != nil {
		t.Skip("no sshd here: run test/testbed/sshd.sh install")
	}
	port, free, err := hosttest.Ports(30000)
	defer free()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sshd := func(verb string) {
		t.Helper()
		cmd := exec.Command("../testbed/sshd.sh", verb)
		cmd.Env = append(os.Environ(), "SSHD_TB_DIR="+dir, fmt.Sprintf("SSHD_TB_PORT=%d", port))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("sshd.sh %s: %v: %s", verb, err, out)
		}
	}
	sshd("start")
	defer sshd("stop")
	login, err := host.NewSSH(host.SSHOptions{
		Address: "gpu-host", Config: dir + "/ssh_config", Env: map[string]string{"SLURM_CONF": os.Getenv("SLURM_CONF")},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := options(t.TempDir())
	o.Login = login
	s, err := host.NewSlurm(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := (ending{s}).Close(); err != nil {
			t.Error(err)
		}
		if err := login.Close(); err != nil {
			t.Error(err)
		}
	}()
	p := shell(t, s, "echo one; sleep 3; echo two; exit 4")
	hosttest.FirstLine(t, p)
	sshd("drop")
	if e := hosttest.Wait(t, p); e.Code != 4 || !e.Known {
		t.Errorf("%+v", e)
	}
	if b, err := p.Log(t.Context(), 0, 100); string(b) != "one\ntwo\n" || err != nil {
		t.Errorf("log %q, %v", b, err)
	}
	u, err := s.Usage(t.Context())
	if err != nil || u.MemTotal <= 0 || time.Since(u.At) > time.Minute {
		t.Errorf("%+v, %v", u, err)
	}
}
