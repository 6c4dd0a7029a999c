package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slurm2205 is what scontrol 22.05.8 printed of a real job; the others change it as later versions do.
const slurm2205 = "JobId=1 JobName=sgtune-t1 UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901759 Nice=0 Account=(null) QOS=(null) " +
	"JobState=PENDING Reason=None Dependency=(null) Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:00 TimeLimit=00:02:00 " +
	"TimeMin=N/A SubmitTime=2026-11-30T08:29:51 StartTime=Unknown EndTime=Unknown Partition=gpu AllocNode:Sid=localhost:26384 NodeList= " +
	"ReqB:S:C:T=0:0:*:* TRES=cpu=1,mem=1G,node=1,billing=1 Command=(null) WorkDir=/w Comment=sgtune-t1  StdErr=/o.1 Power= TresPerNode=gres:gpu:2 \n"

func TestParseSlurmJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       SlurmJob
		cause      SlurmCause
	}{
		{"22.05, waits", slurm2205, SlurmJob{ID: "1", Name: "sgtune-t1", State: "PENDING"}, ""},
		{
			"a wrapper's notes around it", "scontrol: note: new features\n" + slurm2205 + "\nbye\n",
			SlurmJob{ID: "1", Name: "sgtune-t1", State: "PENDING"},
			"",
		},
		{
			"memory", "JobId=18 JobName=a JobState=OUT_OF_MEMORY Reason=OutOfMemory Restarts=0 ExitCode=0:125 NodeList=n1 BatchHost=n1\n",
			SlurmJob{ID: "18", Name: "a", State: "OUT_OF_MEMORY", Reason: "OutOfMemory", Node: "n1", Signal: 125},
			SlurmMemory,
		},
		{
			"failed", "JobId=2 JobName=a JobState=FAILED Reason=NonZeroExitCode ExitCode=42:0 BatchHost=n2",
			SlurmJob{ID: "2", Name: "a", State: "FAILED", Reason: "NonZeroExitCode", Node: "n2", Code: 42},
			SlurmFailed,
		},
		{
			"a state with its flags", "JobId=2 JobName=a JobState=RUNNING,COMPLETING Reason=None ExitCode=0:0",
			SlurmJob{ID: "2", Name: "a", State: "COMPLETING"},
			"",
		},
		{
			"a comment that plays fields", "JobId=2 JobName=a JobState=RUNNING Reason=None ExitCode=0:0 Comment=x JobState=FAILED ExitCode=1:0",
			SlurmJob{ID: "2", Name: "a", State: "RUNNING"},
			"",
		},
		{
			"lost node, started twice", "JobId=2 JobName=a JobState=NODE_FAIL Reason=NodeDown Restarts=1 ExitCode=0:0 BatchHost=n1",
			SlurmJob{ID: "2", Name: "a", State: "NODE_FAIL", Reason: "NodeDown", Node: "n1", Restarts: 1},
			SlurmNodeLost,
		},
		{
			"a state of the future", "JobId=2 JobName=a JobState=TELEPORTED Reason=None",
			SlurmJob{ID: "2", Name: "a", State: "TELEPORTED", Code: -1},
			"",
		},
	} {
		got, err := parseSlurmJob(c.text)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", c.name, err, diff)
		}
		if got.Cause() != c.cause {
			t.Errorf("%s: cause %q, want %q", c.name, got.Cause(), c.cause)
		}
	}
	for _, text := range []string{"", "No jobs in the system", "JobId=x JobState=RUNNING", "JobId=1", "JobId=1 JobState= Reason=None"} {
		if j, err := parseSlurmJob(text); err == nil {
			t.Errorf("%q was taken for %+v", text, j)
		}
	}
}

func TestParseSlurmQueue(t *testing.T) {
	t.Parallel()
	text := "CLUSTER: big\nsgtune|9|CANCELLED|n1|sgtune-7|None\nsgtune|12|PENDING|n/a|sgtune-7|(Nodes required | are DOWN)\n" +
		"sgtune|13_[1-3]|PENDING||sgtune-7|None\nsgtune|14|\nsgtune|||||\nsomething else\n"
	want := []SlurmJob{
		{ID: "12", State: "PENDING", Name: "sgtune-7", Reason: "(Nodes required | are DOWN)", Code: -1},
		{ID: "9", State: "CANCELLED", Name: "sgtune-7", Node: "n1", Code: -1},
	}
	if diff := cmp.Diff(want, parseSlurmQueue(text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestParseSlurmSubmitted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"12\n": {"12"}, "sbatch: note\n4711;big\n": {"4711", "big"}, "Submitted batch job 7\n": {}, "": {}, "0": {}, "12 13": {},
	} {
		id, cluster, ok := parseSlurmSubmitted(text)
		if id != want[0] || cluster != want[1] || ok != (id != "") {
			t.Errorf("%q: %q %q %v", text, id, cluster, ok)
		}
	}
}

// Every state says either that the job has ended and why, or neither.
func TestSlurmStates(t *testing.T) {
	t.Parallel()
	for state, m := range slurmStates {
		j := SlurmJob{ID: "1", State: state}
		if ended := m.phase == SlurmEnded; ended != (m.cause != "") || ended != (m.words != "") || m.phase == "" {
			t.Errorf("%s: %+v", state, m)
		}
		if j.Phase() != m.phase || j.Why() == "" {
			t.Errorf("%s: %s, %q", state, j.Phase(), j.Why())
		}
	}
}
