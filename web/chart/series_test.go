package chart_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/trial"
	"sgtune/web/chart"
)

// logged is a server log of n decode batches, one a second, by a clock an hour ahead.
func logged(start time.Time, n int) *bytes.Reader {
	var b strings.Builder
	for i := range n {
		at := start.Add(time.Hour + time.Duration(i)*time.Second)
		fmt.Fprintf(&b, "[%s TP0] Decode batch, #running-req: %d, #token: 5000, token usage: 0.%02d, cuda graph: True, gen throughput (token/s): %d.5, #queue-req: %d, \n",
			at.Format(time.DateTime), 10+i%5, 10+i%80, 100+i, i%3)
		fmt.Fprintf(&b, "[%s TP1] Decode batch, #running-req: 999, #token: 5000, token usage: 0.99, cuda graph: True, gen throughput (token/s): 9.0, #queue-req: 9, \n", at.Format(time.DateTime))
	}
	return bytes.NewReader([]byte(b.String()))
}

func guarded(start time.Time, n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"at":%q,"memory":{"available":%d},"gpus":[{"Used":%d,"PowerWatts":300},{"Used":1,"PowerWatts":250}]}`+"\n",
			start.Add(time.Duration(i)*time.Second).Format(time.RFC3339Nano), int64(71e9), int64(80<<30))
	}
	b.WriteString(`{"at":"2026-`) // cut off by a crash
	return b.Bytes()
}

func oneTrial() *trial.Trial {
	start := time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)
	r := &benchmark.Report{}
	for i := range 5 {
		r.Series = append(r.Series, benchmark.Point{T: float64(i), OutputTokS: 1000 + float64(i), InFlight: 48})
	}
	return &trial.Trial{
		Study: "n", Number: 3, StartedAt: start, Steps: map[trial.Step]time.Duration{trial.StepLaunch: 4 * time.Second, trial.StepWait: time.Minute},
		Levels: []trial.Level{{Concurrency: 48, StartedAt: start.Add(100 * time.Second), Report: r}},
	}
}

func TestTrialLife(t *testing.T) {
	t.Parallel()
	one := oneTrial()
	life := chart.TrialLife(one, chart.Evidence{Log: logged(one.StartedAt, 20), Guard: guarded(one.StartedAt, 3)})
	got := map[string]string{}
	for _, s := range life.Series {
		got[s.Name] = fmt.Sprintf("%d points, %g at %g s", len(s.T), s.V[0], s.T[0])
	}
	want := map[string]string{
		"client, output": "5 points, 1000 at 100 s", "in flight at the client": "5 points, 48 at 100 s", "server, generated": "20 points, 100.5 at 0 s",
		"running": "20 points, 10 at 0 s", "queued": "20 points, 0 at 0 s", "KV cache": "20 points, 10 at 0 s", "GPU memory": "3 points, 80 at 0 s",
		"host memory": "3 points, 71 at 0 s", "power": "3 points, 550 at 0 s",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if s := life.Sentence(); s != "Running at most 14 requests, queued at most 2, KV cache at most 29%, GPU memory at most 80 GiB." {
		t.Error(s)
	}
	if len(life.Notes) != 0 {
		t.Errorf("notes: %q", life.Notes)
	}
	if f := life.Figure(); f.Panels != 6 || f.Table.Total != 9 || f.Empty {
		t.Errorf("%d panels, %d rows", f.Panels, f.Table.Total)
	}
	text, err := json.Marshal(life.Columns())
	if err != nil || !strings.Contains(string(text), `"steps":[{"step":"launch","at_s":[-4,0]},{"step":"wait","at_s":[0,60]}]`) {
		t.Errorf("%v %s", err, text)
	}
}

// TestSimulatedLogClock gives a trial far into a simulated night the log of its server, whose clock began at the wall
// clock of its launch: the server's figures lie where the client's do.
func TestSimulatedLogClock(t *testing.T) {
	t.Parallel()
	one := oneTrial()
	wall := one.StartedAt.Add(-5*time.Hour - 17*time.Minute)
	start := "loading\n[" + wall.Add(time.Hour).Format(time.DateTime) + "] server_args=ServerArgs()\n"
	text, err := io.ReadAll(logged(wall.Add(100*time.Second), 20))
	if err != nil {
		t.Fatal(err)
	}
	log := bytes.NewReader(append([]byte(start), text...))
	for _, s := range chart.TrialLife(one, chart.Evidence{Log: log, Simulated: true}).Series {
		if s.T[0] != 100 {
			t.Errorf("%s begins at %g s", s.Name, s.T[0])
		}
	}
	if s := chart.TrialLife(one, chart.Evidence{Log: log}).Series[2]; s.T[0] == 100 {
		t.Errorf("%s of a real host was moved to its launch", s.Name) // its clock is right, it may only be another zone's
	}
}

func TestLifeWithoutEvidence(t *testing.T) {
	t.Parallel()
	life := chart.TrialLife(oneTrial(), chart.Evidence{})
	if len(life.Series) != 2 || len(life.Notes) != 2 {
		t.Errorf("%d series, notes %q", len(life.Series), life.Notes)
	}
	bare := chart.TrialLife(&trial.Trial{}, chart.Evidence{})
	if f := bare.Figure(); !f.Empty || f.Sentence != "Nothing was recorded second by second." {
		t.Errorf("%+v", f)
	}
}

// huge is a log of many gigabytes that repeats a part.
type huge struct {
	*bytes.Reader
	size, read int64
}

func (h *huge) Size() int64 { return h.size }
func (h *huge) ReadAt(p []byte, off int64) (int, error) {
	n, err := h.Reader.ReadAt(p, off%(h.Reader.Size()-int64(len(p))))
	h.read += int64(n)
	return n, err
}

func TestHugeLogIsNotReadWhole(t *testing.T) {
	t.Parallel()
	one := oneTrial()
	log := &huge{Reader: logged(one.StartedAt, 6000), size: 2 << 30}
	life := chart.TrialLife(one, chart.Evidence{Log: log})
	if log.read > 9<<20 {
		t.Errorf("%d bytes of 2 GiB were read", log.read)
	}
	said := strings.Join(life.Notes, " ")
	if !strings.Contains(said, "evenly spread parts") || !strings.Contains(said, "left out") {
		t.Errorf("notes: %q", life.Notes)
	}
	for _, s := range life.Series {
		if len(s.T) > 4000 || len(s.T) != len(s.V) {
			t.Errorf("%s has %d points", s.Name, len(s.T))
		}
		for i := 1; i < len(s.T); i++ {
			if s.T[i] < s.T[i-1] || math.IsNaN(s.V[i]) {
				t.Fatalf("%s: point %d at %g after %g", s.Name, i, s.T[i], s.T[i-1])
			}
		}
	}
}
