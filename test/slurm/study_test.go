package slurm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sgtune/internal/hosttest"
)

const (
	killsEnv = "SGTUNE_KILLS"   // how many studies are run with a kill -9 each; without it, one with two kills
	nightly  = 70 * time.Second // within which sgtune is killed: about what the study takes
)

// TestStudyOverSlurm runs a whole study, each trial in a job of its own, and again with kill -9 of sgtune at random
// instants: the same winner and class, intervals that overlap, finished rows as they were, and nothing left.
func TestStudyOverSlurm(t *testing.T) {
	need(t)
	t.Parallel()
	studies, kills := 1, 2
	if n, err := strconv.Atoi(os.Getenv(killsEnv)); err == nil {
		studies, kills = n, 1
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("instants from seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	reference := newNight(t, "calm", "1s")
	var calm sync.WaitGroup
	calm.Go(func() { <-reference.Start().Ended }) // on a node of its own, meanwhile
	nights := make([]*night, studies)
	for i := range nights {
		n := newNight(t, fmt.Sprintf("killed-%d", i+1), "1s")
		nights[i] = n
		rows := map[int]string{}
		for range kills {
			n.killAfter(time.Duration(random.Float64()*float64(nightly)/float64(kills)), rows)
		}
		n.finish(n.Start(), 0)
		n.same(rows)
	}
	calm.Wait()
	want := reference.Show()
	if want.State != "complete" || want.Verdict.Answer != "better" {
		t.Fatalf("undisturbed: %s, %+v", want.State, want.Verdict)
	}
	reference.nothingLeft()
	for _, n := range nights {
		hosttest.SameAnswer(t, n.Name, want, n.Show())
		n.nothingLeft()
	}
}

// killAfter runs the study and kills sgtune after d. Rows finished before stay as they were; rows is added to.
func (n *night) killAfter(d time.Duration, rows map[int]string) {
	n.T.Helper()
	r := n.Start()
	select {
	case <-r.Ended:
	case <-time.After(d):
	}
	if !r.Kill() {
		n.T.Fatalf("it ended before it was to be killed, after %s", d)
	}
	n.same(rows)
	n.T.Logf("%s: killed after %s, %d rows finished", n.Name, d.Round(100*time.Millisecond), len(rows))
}

// same fails when a trial that was finished before is another one now, and adds those that are finished since.
func (n *night) same(rows map[int]string) {
	n.T.Helper()
	now := n.Show().Finished()
	for number, was := range rows {
		if now[number] != was {
			n.T.Errorf("%s: finished trial %d changed:\n%s\n%s", n.Name, number, was, now[number])
		}
	}
	for number, is := range now {
		rows[number] = is
	}
}

// TestStudyWhoseJobsEnd ends the jobs of trials by other hands: each is told for what it was, speaks against no
// configuration, and the study goes on.
func TestStudyWhoseJobsEnd(t *testing.T) {
	need(t)
	t.Parallel()
	n := newNight(t, "ends", "2m")
	r := n.Start()
	for i, end := range []struct {
		how            func(id string)
		outcome, cause string
		said           string
	}{
		{func(id string) { scontrol(t, "scancel", id) }, "aborted", "operator_signal", "is CANCELLED"},
		{func(id string) { scontrol(t, "scontrol", "update", "JobId="+id, "EndTime=now") }, "aborted", "job_time_limit", "reached its time limit"},
		{func(id string) {
			node := strings.TrimSpace(scontrol(t, "squeue", "-h", "-j", id, "-o", "%N"))
			scontrol(t, "scontrol", "update", "NodeName="+node, "State=DOWN", "Reason=test")
			t.Cleanup(func() {
				_ = exec.Command("scontrol", "update", "NodeName="+node, "State=RESUME").Run() // it may have come back by itself
			})
		}, "aborted", "unknown", "lost its node"},
	} {
		end.how(n.serving(i))
		var got hosttest.Trial
		eventually(t, fmt.Sprintf("trial %d ends", i), 2*time.Minute, func() bool {
			s := n.Show()
			if len(s.Trials) > i {
				got = s.Trials[i]
			}
			return got.State == "failed"
		})
		if got.Outcome != end.outcome || got.Cause != end.cause {
			t.Errorf("trial %d: %+v, want %s / %s", i, got, end.outcome, end.cause)
		}
		if b, err := os.ReadFile(r.Out); err != nil || !strings.Contains(string(b), end.said) {
			t.Errorf("trial %d: not said %q, %v", i, end.said, err)
		}
	}
	n.serving(3)
	if err := r.Cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	n.finish(r, 130)
	n.nothingLeft()
}

// serving waits until the server of a trial serves, and returns its job.
func (n *night) serving(number int) (id string) {
	n.T.Helper()
	eventually(n.T, fmt.Sprintf("trial %d is measured", number), 2*time.Minute, func() bool {
		log, _ := os.ReadFile(n.Path(fmt.Sprintf("sgtune.files/%s/%d/server.log", n.Name, number)))
		jobs := n.jobsOf(fmt.Sprintf("%d.", number))
		if !strings.Contains(string(log), "Decode batch") || len(jobs) != 1 {
			return false
		}
		id = jobs[0]
		return true
	})
	return id
}
