package host

import (
	"strings"
	"testing"
)

func FuzzSlurmJob(f *testing.F) {
	f.Add("JobId=12 JobName=sgtune-7 Priority=1 JobState=RUNNING Reason=None Restarts=0 ExitCode=0:0 BatchHost=n1 Comment=sgtune-7 \n")
	f.Add("JobId=3 JobName=a JobState=CANCELLED Reason=x ExitCode=0:15 Comment=a JobState=RUNNING")
	f.Add("JobId= JobState=")
	f.Fuzz(func(t *testing.T, text string) {
		j, err := parseSlurmJob(text)
		if err != nil {
			return
		}
		if j.ID == "" || j.State == "" || j.Code < -1 || j.Signal < 0 || j.Restarts < 0 || !strings.Contains(text, "JobId="+j.ID) {
			t.Errorf("%+v of %q", j, text)
		}
		if ended := j.Phase() == SlurmEnded; ended != (j.Cause() != "") {
			t.Errorf("%+v: phase %s and cause %q", j, j.Phase(), j.Cause())
		}
	})
}

func FuzzSlurmQueue(f *testing.F) {
	f.Add("sgtune|12|PENDING|n/a|sgtune-7|Resources\nsgtune|9|RUNNING|n1|sgtune-7|None\n")
	f.Add("Welcome\nCLUSTER: a\nsgtune|1_[2-4]|PENDING||x|(Some, reason | with bars)")
	f.Fuzz(func(t *testing.T, text string) {
		for _, j := range parseSlurmQueue(text) {
			if !slurmNumber(j.ID) || j.Code != -1 || strings.ContainsAny(j.Name, "|\n") {
				t.Errorf("%+v of %q", j, text)
			}
		}
	})
}

func FuzzSlurmSubmitted(f *testing.F) {
	f.Add("12\n")
	f.Add("sbatch: a note\n4711;big\n")
	f.Fuzz(func(t *testing.T, text string) {
		if id, cluster, ok := parseSlurmSubmitted(text); ok && (!slurmNumber(id) || strings.ContainsAny(cluster, " ;\n")) {
			t.Errorf("%q %q of %q", id, cluster, text)
		}
	})
}

// What a login shell prints around it changes nothing in what is taken for the program's output.
func FuzzCutRemote(f *testing.F) {
	f.Add("Welcome", "12\n", 0, "bye")
	f.Add("", "", 127, "")
	f.Fuzz(func(t *testing.T, before, output string, status int, after string) {
		const mark = "sgtune-0123456789abcdef"
		if strings.Contains(before+output+after, mark) {
			return
		}
		text := before + "\n" + mark + " begin\n" + output + "\n" + mark + " end 7\n"
		if got, code, ok := cutRemote(text, mark); got != output || code != 7 || !ok {
			t.Errorf("%q %d %v of %q", got, code, ok, text)
		}
		if _, _, ok := cutRemote(before+output, mark); ok {
			t.Error("an output without an end was taken")
		}
	})
}
