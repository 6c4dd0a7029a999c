package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sgtune/host"
)

// TestSecondTuner: the program itself, started on another machine (of another name, with process numbers of its own), is
// refused by a host that has a tuner, with exit 3 and who that is and since when; so is one on the host itself.
func TestSecondTuner(t *testing.T) {
	n := newNight(t, "second", "gpu-study", nil)
	link, err := host.NewSSH(host.SSHOptions{Address: "gpu-study", Config: bed("config"), Work: n.work(), Agent: agent})
	if err != nil {
		t.Fatal(err)
	}
	first := host.NewRemote(host.RemoteOptions{Link: link})
	defer first.Close()
	release, err := first.Lease(t.Context(), "study first")
	if err != nil {
		t.Fatal(err)
	}
	n.refused(t, "study.yaml", "unshare", "--uts", "--pid", "--fork", "--mount-proc", "sh", "-c", `hostname laptop-b && exec "$@"`, "sh")

	text, err := os.ReadFile(n.Path("study.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "\nhost:\n")
	_, after, found := strings.Cut(rest, "\nsampler:")
	if !found {
		t.Fatalf("no host to replace in\n%s", text)
	}
	local := before + "\nhost: {kind: local}\nsampler:" + after
	if err := os.WriteFile(n.Path("local.yaml"), []byte(local), 0o600); err != nil {
		t.Fatal(err)
	}
	n.refused(t, "local.yaml", "env", "XDG_STATE_HOME="+bed("state"), "PATH="+bed("gpu")+":"+os.Getenv("PATH"))

	if err := release(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(n.work(), "lease", "*")); err != nil || len(left) != 0 {
		t.Errorf("left of the leases: %v, %v", left, err)
	}
}

// refused runs a study's tune by a command that starts it somewhere, and wants to hear of the first one.
func (n *night) refused(t *testing.T, study string, where ...string) {
	t.Helper()
	argv := append(where, n.Program, "tune", n.Path(study), "--db", n.Path(study+".db"), "--web", "off")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+n.Path("run"), "NO_COLOR=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("%s: %v, want exit 3\n%s", study, err, out)
	}
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"study first"`, fmt.Sprintf("pid %d of ", os.Getpid()), "@" + machine, "since 20"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s lacks %q", out, want)
		}
	}
}
