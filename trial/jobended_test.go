package trial

import (
	"strings"
	"testing"

	"sgtune/host"
	"sgtune/sglang"
)

// TestEndedByJob: what Slurm says became of the job is the verdict, whatever the death of the server looks like.
func TestEndedByJob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state, want string
		blames      Blame
		text        string
	}{
		{"TIMEOUT", "aborted / job_time_limit", BlameNo, "ask for more with host.time_limit; nothing failed: the same configuration is run again"},
		{"OUT_OF_MEMORY", "host_oom / cgroup_limit", BlameYes, "ask for more with host.memory"},
		{"PREEMPTED", "aborted / operator_signal", BlameNo, "had to make way"},
		{"CANCELLED", "aborted / operator_signal", BlameNo, "was cancelled"},
		{"NODE_FAIL", "aborted / unknown", BlameNo, "lost its node"},
		{"REQUEUED", "aborted / unknown", BlameNo, "back into the queue"},
		{"BOOT_FAIL", "aborted / unknown", BlameNo, "could not be started"},
		{"FAILED", "aborted / unknown", BlameNo, "its batch script failed"},
		{"COMPLETED", "aborted / unknown", BlameNo, "no sgtune was heard"},
		{string(host.SlurmGone), "aborted / unknown", BlameNo, "has forgotten it"},
	} {
		for _, end := range []Ending{EndDied, EndHost, EndReplay} {
			f := Facts{
				Ending: end, Exit: Exit{Exit: host.Exit{Code: -1, Signal: 15, Known: true}}, Dead: true, Ready: true, KernelOOM: -1, CgroupOOM: -1,
				Log: sglang.LogFacts{Ready: true, Phase: sglang.PhaseDecode}, Job: &host.SlurmJob{ID: "12", State: tt.state},
			}
			v := Classify(f)
			if got := string(v.Outcome) + " / " + v.Cause; got != tt.want || v.Blames != tt.blames || !strings.Contains(v.Text, tt.text) {
				t.Errorf("%s, %s: %s, blames %s: %s", tt.state, end, got, v.Blames, v.Text)
			}
			if !CauseAllowed(v.Outcome, v.Cause) {
				t.Errorf("%s: %s / %s is not in the vocabulary", tt.state, v.Outcome, v.Cause)
			}
		}
	}
	guarded := Facts{
		Ending: EndDied, KernelOOM: -1, CgroupOOM: -1, Job: &host.SlurmJob{ID: "12", State: "COMPLETED"},
		Guard: &host.GuardVerdict{Reason: host.GuardCgroup, Detail: "1 GB left"},
	}
	if v := Classify(guarded); v.Outcome != HostOOM {
		t.Errorf("the guard came first: %s", v.Text)
	}
}
