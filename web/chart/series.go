package chart

import (
	"fmt"
	"math"
	"strings"
	"time"

	"sgtune/trial"
)

// Panels of a trial's charts, from the top.
const (
	panelTokens = iota
	panelRequests
	panelKV
	panelGPU
	panelRAM
	panelPower
	panelCount
)

// panels are the words of each: what and in which unit.
var panels = [panelCount]struct{ Title, Unit string }{
	{"Throughput", "tok/s"},
	{"Requests", ""},
	{"KV cache in use", "%"},
	{"GPU memory, fullest GPU", "GiB"},
	{"Host memory available", "GB"},
	{"Power, all GPUs", "W"},
}

// Series is one line over a trial's time.
type Series struct {
	Name  string
	Panel int
	T, V  []float64 // seconds from the launch, and the figure
	Left  int       // points left out
}

// Life is a trial's time as its charts show it.
type Life struct {
	Trial  *trial.Trial
	Series []Series // those that have points
	Notes  []string // what is missing or left out, in words
}

// Evidence is what lies in a trial's folder, as far as charts read it. Log and Guard may be nil.
type Evidence struct {
	Log       Log    // of the server
	Guard     []byte // samples of the guard, a JSON object a line
	Simulated bool   // the host is: its log's clock starts at the wall clock, the trial's at the study's own time
}

// TrialLife reads a trial's series from its row and its evidence.
func TrialLife(t *trial.Trial, e Evidence) *Life {
	l := &Life{Trial: t}
	l.load()
	if e.Log != nil {
		points, part, err := readLog(e.Log)
		switch {
		case err != nil:
			l.Notes = append(l.Notes, "The server's log could not be read.")
		case part:
			l.Notes = append(l.Notes, "The server's log is long: figures of the server are from evenly spread parts of it.")
		}
		if len(points) > 0 {
			shift := zoneOf(points[0].at, t.StartedAt)
			if first := firstStamp(e.Log); e.Simulated && !first.IsZero() {
				shift = first.Sub(t.StartedAt).Seconds()
			}
			l.server(points, shift)
		}
	} else {
		l.Notes = append(l.Notes, "There is no server log, so no figure of the server.")
	}
	l.guard(e.Guard)
	for i := range l.Series {
		s := &l.Series[i]
		keep := thin(s.T, s.V, maxPoints)
		if s.Left = len(s.T) - len(keep); s.Left > 0 {
			s.T, s.V = pick(s.T, keep), pick(s.V, keep)
			l.Notes = append(l.Notes, fmt.Sprintf("%s: %s left out.", s.Name, count(s.Left, "point")))
		}
	}
	return l
}

func pick(v []float64, at []int) []float64 {
	out := make([]float64, len(at))
	for i, j := range at {
		out[i] = v[j]
	}
	return out
}

// add keeps a series with points.
func (l *Life) add(name string, panel int, t, v []float64) {
	if len(t) > 0 {
		l.Series = append(l.Series, Series{Name: name, Panel: panel, T: t, V: v})
	}
}

// load is what the client saw, second by second, or window by window where seconds were not kept.
func (l *Life) load() {
	var t, tokens, flight []float64
	for _, level := range l.Trial.Levels {
		if level.Report == nil {
			continue
		}
		from := level.StartedAt.Sub(l.Trial.StartedAt).Seconds()
		for _, p := range level.Report.Series {
			t, tokens, flight = append(t, from+p.T), append(tokens, p.OutputTokS), append(flight, p.InFlight)
		}
		if len(level.Report.Series) > 0 {
			continue
		}
		for _, w := range level.Report.Windows {
			t = append(t, w.Start.Sub(l.Trial.StartedAt).Seconds()+w.Seconds/2)
			tokens, flight = append(tokens, w.Output), append(flight, w.InFlight)
		}
	}
	l.add("client, output", panelTokens, t, tokens)
	l.add("in flight at the client", panelRequests, t, flight)
}

// server is what the server's batch lines say; its log's clock is shift seconds ahead of the trial's.
func (l *Life) server(points []logPoint, shift float64) {
	if end := l.Trial.EndedAt; !end.IsZero() && points[len(points)-1].at.Sub(end).Seconds()-shift > 60 {
		l.Notes = append(l.Notes, "The clock of the server's log does not go with the host's: its figures stand beside the others, not under them.")
	}
	at := func(p logPoint) float64 { return p.at.Sub(l.Trial.StartedAt).Seconds() - shift }
	for _, s := range []struct {
		name  string
		panel int
		value func(logPoint) float64
	}{
		{"server, generated", panelTokens, func(p logPoint) float64 { return p.tokens }},
		{"running", panelRequests, func(p logPoint) float64 { return p.running }},
		{"queued", panelRequests, func(p logPoint) float64 { return p.queued }},
		{"KV cache", panelKV, func(p logPoint) float64 { return 100 * p.usage }},
	} {
		var t, v []float64
		for _, p := range points {
			if x := s.value(p); !math.IsNaN(x) {
				t, v = append(t, at(p)), append(v, x)
			}
		}
		l.add(s.name, s.panel, t, v)
	}
}

// zoneOf is how many seconds a log's clock is ahead of ours because of its time zone: logs name none.
func zoneOf(log, ours time.Time) float64 {
	const quarter = 900
	return math.Round(log.Sub(ours).Seconds()/quarter) * quarter
}

// Sentence says what a trial's time was like.
func (l *Life) Sentence() string {
	var words []string
	most := func(name string, unit string) {
		for _, s := range l.Series {
			if s.Name != name {
				continue
			}
			top := 0
			for i := range s.V {
				if s.V[i] > s.V[top] {
					top = i
				}
			}
			words = append(words, fmt.Sprintf("%s at most %s%s", name, Number(s.V[top]), unit))
		}
	}
	most("running", " requests")
	most("queued", "")
	most("KV cache", "%")
	most("GPU memory", " GiB")
	if len(words) == 0 {
		if len(l.Series) == 0 {
			return "Nothing was recorded second by second."
		}
		return fmt.Sprintf("%s over time.", upper(l.Series[0].Name))
	}
	return upper(strings.Join(words, ", ")) + "."
}

// Table is every point, by series.
func (l *Life) Table() Table {
	t := Table{Caption: "Figures over the time since the launch", Head: []string{"Series", "Seconds", "Value", "Unit"}}
	for _, s := range l.Series {
		for i := range s.T {
			t.text(s.Name, Number(rounded(s.T[i])), Number(rounded(s.V[i])), panels[s.Panel].Unit)
		}
	}
	return t
}

// Summary is one row for each series.
func (l *Life) Summary() Table {
	t := Table{Caption: "Figures of this trial over its time", Head: []string{"Series", "Unit", "Least", "Mean", "Most", "Points"}}
	for _, s := range l.Series {
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range s.V {
			low, high = math.Min(low, v), math.Max(high, v)
		}
		t.text(s.Name, panels[s.Panel].Unit, Number(low), Number(mean(s.V)), Number(high), Number(float64(len(s.T)+s.Left)))
	}
	return t
}

// lifeColumns is a trial's time as it is sent.
type lifeColumns struct {
	Trial  int           `json:"trial"`
	Panels []panelColumn `json:"panels"`
	Steps  []stepColumn  `json:"steps"`
	Notes  []string      `json:"notes"`
}

type panelColumn struct {
	Title  string         `json:"title"`
	Unit   string         `json:"unit"`
	Series []seriesColumn `json:"series"`
}

type seriesColumn struct {
	Name string `json:"name"`
	T    column `json:"t_s"`
	V    column `json:"v"`
}

type stepColumn struct {
	Step string `json:"step"`
	At   column `json:"at_s"` // from, to
}

// Columns lays a trial's time out for its charts.
func (l *Life) Columns() any {
	out := lifeColumns{Trial: l.Trial.Number, Notes: l.Notes}
	for i, p := range panels {
		panel := panelColumn{Title: p.Title, Unit: p.Unit}
		for _, s := range l.Series {
			if s.Panel == i {
				panel.Series = append(panel.Series, seriesColumn{Name: s.Name, T: s.T, V: s.V})
			}
		}
		if len(panel.Series) > 0 {
			out.Panels = append(out.Panels, panel)
		}
	}
	at := -(l.Trial.Steps[trial.StepAdmit] + l.Trial.Steps[trial.StepLaunch]).Seconds()
	for _, s := range stepNames {
		if took := l.Trial.Steps[s].Seconds(); took > 0 {
			out.Steps = append(out.Steps, stepColumn{Step: string(s), At: column{at, at + took}})
			at += took
		}
	}
	return out
}
