package hosts

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/internal/hosttest"
)

const longEnv = "SGTUNE_LONG" // makes cuts as long as those of a bad night

// shortStudy has two configurations for the search and one confirmation pair, with levels long enough to be cut in the middle.
// The budget has launches to spare for those that others on the machine make void.
func shortStudy(text string) string {
	for old, replacement := range map[string]string{
		`mem-fraction-static: {values.*}`: "mem-fraction-static: {values: [0.79]}", `trials: \d+`: "trials: 7", `launches: \d+`: "launches: 1",
		`measure: {.*}`: "measure: {window: 1s, max: 4s, canary: 400ms, fill: off}",
	} {
		text = regexp.MustCompile(old).ReplaceAllString(text, replacement)
	}
	return text
}

// TestStudyOverCutLink: the link is dropped, and the server of the link is away for a while, each in the middle of a
// load level. The level is measured anew on the server that lives on; no launch is lost.
func TestStudyOverCutLink(t *testing.T) {
	n := newNight(t, "cut", "gpu-study", shortStudy)
	away := 3 * time.Second
	if os.Getenv(longEnv) != "" {
		away = 30 * time.Second
	}
	r := n.Start()
	n.inLevel(r, 0)
	do(t, "drop")
	n.inLevel(r, 1)
	do(t, "stop")
	time.Sleep(away)
	do(t, "start")
	if err := addKeys(); err != nil {
		t.Fatal(err)
	}
	n.finish(r)
	s := n.Show()
	allWell(t, s, 4)
	measuredAnew := 0
	for _, e := range s.Events {
		if strings.Contains(e.Text, "discarded and measured again") {
			measuredAnew++
			t.Log(e.Text)
		}
	}
	if measuredAnew != 2 {
		t.Errorf("%d levels were measured anew, want 2: %+v", measuredAnew, s.Events)
	}
	n.nothingLeft()
}

// inLevel waits until a trial is in the middle of its load level.
func (n *night) inLevel(r *hosttest.Tuning, number int) {
	n.T.Helper()
	n.awaitRow(r, `number = ? AND step = 'measure'`, number)
	time.Sleep(1500 * time.Millisecond)
}

// allWell checks that a study came to its verdict with this many launches that count, none of them in vain. Those during
// which others took the machine do not count.
func allWell(t *testing.T, s hosttest.Shown, launches int) {
	t.Helper()
	count := 0
	for _, trial := range s.Trials {
		if strings.Contains(trial.Void, "other processes took") {
			t.Logf("trial %d: %s", trial.Number, trial.Void)
			continue
		}
		count++
		if trial.State != "complete" || trial.Outcome != "ok" || trial.Value == nil || trial.Void != "" {
			t.Errorf("trial %d: %s, %s, %s, void %q", trial.Number, trial.State, trial.Outcome, trial.Cause, trial.Void)
		}
	}
	if s.State != "complete" || s.Verdict.Answer == "" || count != launches {
		t.Errorf("state %s, answer %q, %d launches that count; want complete, an answer, %d", s.State, s.Verdict.Answer, count, launches)
	}
}

// TestStudyThroughJump: the same study through a jump host, with the load generator here: every request takes the link.
func TestStudyThroughJump(t *testing.T) {
	n := newNight(t, "jump", "gpu-study-via-jump", func(text string) string {
		return strings.Replace(shortStudy(text), "  tuner_gone: 2m\n", "  tuner_gone: 2m\n  replay_from: here\n", 1)
	})
	r := n.Start()
	n.finish(r)
	allWell(t, n.Show(), 4)
	n.nothingLeft()
}

// TestStudyOnFullDisk: the host's disk fills up while a trial runs. The study says so and ends; with room again it goes on.
func TestStudyOnFullDisk(t *testing.T) {
	n := newNight(t, "full", "gpu-study", shortStudy)
	run := n.work() + "/run"
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", run, "tmpfs", 0, "size=2m,mode=700"); err != nil {
		t.Skip("cannot mount a tmpfs here: " + err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(run, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	r := n.Start()
	n.inLevel(r, 0)
	stop := fill(t, run+"/filler")
	n.Await(r, 3*time.Minute)
	if text := r.Text(); r.Code != 1 || !strings.Contains(text, "2 launches in a row failed before there was a server") || !strings.Contains(text, "no space left") {
		t.Errorf("exit %d\n%s", r.Code, text)
	}
	n.whole()
	stop()
	before := n.sums()
	n.finish(n.Start())
	s := n.Show()
	kept(t, before, n.sums())
	if s.State != "complete" || s.Verdict.Answer == "" {
		t.Errorf("state %s, answer %q; want complete, an answer", s.State, s.Verdict.Answer)
	}
	n.nothingLeft()
}

// fill takes all room that there is around a file, and whatever becomes free, until the returned function gives it back.
func fill(t *testing.T, path string) (giveBack func()) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for piece := make([]byte, 4096); ; time.Sleep(10 * time.Millisecond) {
			for err = nil; err == nil; {
				_, err = f.Write(piece)
			}
			select {
			case <-quit:
				return
			default:
			}
		}
	}()
	return func() {
		close(quit)
		<-done
		if err := errors.Join(f.Close(), os.Remove(path)); err != nil {
			t.Error(err)
		}
	}
}
