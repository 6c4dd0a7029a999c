package trial

import (
	"strings"
	"testing"

	"sgtune/host"
	"sgtune/sglang"
)

// TestEndedByGuard: what the guard says it did is the verdict, whatever the death of the server looks like.
func TestEndedByGuard(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason  host.GuardReason
		want    string
		blames  Blame
		finding string
		text    string
	}{
		{host.GuardMemory, "host_oom / kernel_oom_kill", BlameYes, "host_oom_avoided", "before the kernel had to: the detail"},
		{host.GuardSwap, "host_oom / kernel_oom_kill", BlameYes, "host_oom_avoided", "the detail"},
		{host.GuardCgroup, "host_oom / cgroup_limit", BlameYes, "host_oom_avoided", "the detail"},
		{host.GuardTimeLimit, "aborted / job_time_limit", BlameNo, "", "innocent"},
		{host.GuardTunerGone, "aborted / unknown", BlameNo, "", "not heard any more: the detail"},
	} {
		t.Run(string(tt.reason), func(t *testing.T) {
			t.Parallel()
			f := Facts{
				Ending: EndDied, Exit: Exit{Exit: host.Exit{Code: -1, Signal: 9, Known: true}}, Dead: true, Ready: true, KernelOOM: -1, CgroupOOM: -1,
				Log: sglang.LogFacts{Ready: true}, Guard: &host.GuardVerdict{Reason: tt.reason, Detail: "the detail"},
			}
			v := Classify(f)
			if got := string(v.Outcome) + " / " + v.Cause; got != tt.want || v.Blames != tt.blames || !strings.Contains(v.Text, tt.text) {
				t.Errorf("%s, blames %s: %s", got, v.Blames, v.Text)
			}
			found := ""
			for _, x := range v.Findings {
				if x.Name == "host_oom_avoided" {
					found = x.Name
				}
			}
			if found != tt.finding {
				t.Errorf("findings %+v", v.Findings)
			}
			f.Guard = nil
			if v := Classify(f); v.Outcome == HostOOM || v.Cause == "job_time_limit" {
				t.Errorf("without the guard's word: %s / %s", v.Outcome, v.Cause)
			}
		})
	}
}
