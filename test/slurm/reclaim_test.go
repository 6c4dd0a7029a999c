package slurm

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestReclaim: sgtune is gone and its trial's job runs on. sgtune reclaim is refused as long as a study lives, shows what is
// there without touching it when asked to, and then ends the study's jobs, to the last file; the job of a stranger runs on.
func TestReclaim(t *testing.T) {
	n := newNight(t, "reclaim", "2m")
	stranger := strings.TrimSpace(scontrol(t, "sbatch", "--parsable", "--job-name=sgtune-other.0.x", "--mem=100M", "--output=/dev/null", "--wrap=sleep 300"))
	t.Cleanup(func() { scontrol(t, "scancel", stranger) })
	r := n.Start()
	n.serving(0)
	jobs := n.jobs()
	if code, out := n.reclaim(); code != 3 || !strings.Contains(out, "study reclaim") || !strings.Contains(out, "nothing was freed") {
		t.Errorf("while the study lives: exit %d\n%s", code, out)
	}
	if !r.Kill() {
		t.Fatal("the study ended before its time")
	}
	if code, out := n.reclaim("--list"); code != 0 || !strings.Contains(out, "Slurm job sgtune-reclaim.0.") || strings.Contains(out, "sgtune-other") {
		t.Errorf("--list: exit %d\n%s", code, out)
	}
	if now := n.jobs(); !slices.Equal(now, jobs) {
		t.Errorf("--list ended something: jobs %v, then %v", jobs, now)
	}
	if code, out := n.reclaim(); code != 0 {
		t.Errorf("exit %d\n%s", code, out)
	}
	n.nothingLeft()
	if state := strings.TrimSpace(scontrol(t, "squeue", "-h", "-j", stranger, "-o", "%T")); state != "RUNNING" {
		t.Errorf("the job of a stranger is %s", state)
	}
	if code, out := n.reclaim(); code != 0 {
		t.Errorf("once more: exit %d\n%s", code, out)
	}
}

// reclaim runs sgtune reclaim for the study.
func (n *night) reclaim(words ...string) (code int, output string) {
	n.T.Helper()
	cmd, out := n.Command(append([]string{"reclaim", n.Path("study.yaml")}, words...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		n.T.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		n.T.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}
