package hosts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"sgtune/internal/hosttest"
)

const killsEnv = "SGTUNE_KILLS" // how many studies are run with a kill -9 each; without it, one with two kills

// TestStudyOverSSH runs a whole study on a host of the testbed, and again with kill -9 of sgtune at random instants: the
// same winner and class, intervals that overlap, finished rows as they were, and nothing left on either side.
func TestStudyOverSSH(t *testing.T) {
	calm := newNight(t, "calm", "gpu-study", nil)
	begin := time.Now()
	calm.finish(calm.Start())
	took := time.Since(begin)
	want := calm.Show()
	t.Logf("undisturbed: %s, %d launches, %s by %.1f%%", took.Round(time.Second), len(want.Trials), want.Verdict.Answer, 100*want.Verdict.Gain)
	if want.State != "complete" || want.Verdict.Answer != "better" {
		t.Fatalf("undisturbed: %s, %+v", want.State, want.Verdict)
	}
	calm.allVerified()
	calm.nothingLeft()
	launches := 0 // that every such study has: those that others on the machine made void are not made again elsewhere
	for _, trial := range want.Trials {
		if trial.Void == "" {
			launches++
		}
	}

	studies, kills := 1, 2
	if n, err := strconv.Atoi(os.Getenv(killsEnv)); err == nil {
		studies, kills = n, 1
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("instants from seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range studies {
		name := fmt.Sprintf("killed-%d", i+1)
		t.Run(name, func(t *testing.T) {
			n := newNight(t, name, "gpu-study", nil)
			sums := map[int]string{}
			for k := range kills {
				n.killAt(randomInstant(random, launches, took, k, kills), sums)
			}
			n.finish(n.Start())
			got := n.Show()
			hosttest.SameAnswer(t, name, want, got)
			kept(t, sums, n.sums())
			n.allVerified()
			n.nothingLeft()
			t.Logf("%d rows finished before the last kill, %d at the end; %s by %.1f%% (%.1f%% to %.1f%%)", len(sums), len(got.Trials),
				got.Verdict.Answer, 100*got.Verdict.Gain, 100**got.Verdict.Low, 100**got.Verdict.High)
		})
	}
}

// instant is a moment in the life of a study: so long after a trial was begun.
type instant struct {
	trial int // -1: after the program was started
	after time.Duration
}

// randomInstant picks the instant of kill k of kills in a study that undisturbed has so many launches and takes so long. It is never in the
// last launch: the study would be over at times, on a machine with other work.
func randomInstant(random *rand.Rand, launches int, took time.Duration, k, kills int) instant {
	share := (launches - 1) / kills
	number := k*share + random.IntN(share)
	if k == 0 && number == 0 && random.IntN(2) == 0 {
		number = -1
	}
	return instant{trial: number, after: time.Duration(random.Float64() * float64(took) / float64(launches))}
}

// killAt runs the study and kills sgtune at an instant. Rows finished before stay as they were; sums are added to.
func (n *night) killAt(at instant, sums map[int]string) {
	n.T.Helper()
	r := n.Start()
	if at.trial >= 0 {
		n.awaitRow(r, `number >= ?`, at.trial)
	}
	select {
	case <-r.Ended:
	case <-time.After(at.after):
	}
	if !r.Kill() {
		n.T.Fatalf("it ended before it was to be killed, %s after trial %d was begun:\n%s", at.after, at.trial, r.Text())
	}
	n.whole()
	now := n.sums()
	kept(n.T, sums, now)
	for number, sum := range now {
		sums[number] = sum
	}
	n.T.Logf("killed %s after trial %d was begun (-1: the program), %d rows finished, in step %s", at.after.Round(100*time.Millisecond), at.trial, len(now), n.step())
}

// step is where the running trial stands.
func (n *night) step() string {
	n.T.Helper()
	db := n.open()
	if db == nil {
		return "none"
	}
	defer func() { _ = db.Close() }()
	step := "none"
	_ = db.QueryRow(`SELECT step FROM trials WHERE state = 'running'`).Scan(&step) // none runs, or there is no table
	return step
}
