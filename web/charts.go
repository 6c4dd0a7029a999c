package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"sgtune/trial"
	"sgtune/tuner"
	"sgtune/web/chart"
)

// StudyCharts is what the template "study-charts" is given.
type StudyCharts struct {
	Study   string
	Base    string // address of the charts' data
	Figures []chart.Figure
}

// TrialCharts is what the template "trial-charts" is given.
type TrialCharts struct {
	Study   string
	Base    string
	Figures []chart.Figure // one
}

// walker is a Reader that shows trials one at a time, without what is large in them. A Reader that cannot is asked for
// all of them at once.
type walker interface {
	WalkTrials(ctx context.Context, study string, visit func(*trial.Trial) error) error
}

// chartEvents is how many of a study's events its charts know: the first fix the space, the newest are marked.
const chartEvents = 1000

// maxEvidence bounds what is read of a guard's samples, which their writer bounds as well.
const maxEvidence = 32 << 20

// drawn are a study's charts as of one revision: ready to be sent.
type drawn struct {
	revision int64
	at       time.Time
	running  bool // the study was, then
	figures  []chart.Figure
	packed   []byte // columns as JSON, compressed
	learnt   lesson
	matter   []tuner.Importance // of learnt
}

// drawnStudies keeps the charts of the studies looked at last: building them reads every trial.
type drawnStudies struct {
	mu    sync.Mutex
	known map[string]*drawn
}

// redraw is how long the charts of a running study stand: it changes all the time, and drawing takes from the CPU that
// a load generator beside it needs.
const redraw = 5 * time.Second

// keptStudies is how many studies' charts are kept.
const keptStudies = 8

// studyCharts are the charts of a study's page.
func (h *Handler) studyCharts(ctx context.Context, name string) (*StudyCharts, error) {
	d, err := h.drawn(ctx, name)
	if err != nil {
		return nil, err
	}
	return &StudyCharts{Study: name, Base: "/api/v1/studies/" + url.PathEscape(name) + "/charts", Figures: d.figures}, nil
}

// trialCharts are the charts of a trial's page. t must come whole, with the series of its levels.
func (h *Handler) trialCharts(s *tuner.Summary, t *trial.Trial) *TrialCharts {
	base := "/api/v1/studies/" + url.PathEscape(t.Study) + "/trials/" + strconv.Itoa(t.Number) + "/charts"
	return &TrialCharts{Study: t.Study, Base: base, Figures: []chart.Figure{h.life(s, t).Figure()}}
}

// drawn is what is kept of a study, built anew when it changed. One request builds, others wait for it.
func (h *Handler) drawn(ctx context.Context, name string) (*drawn, error) {
	now, err := h.reader.Summary(ctx, name)
	if err != nil {
		return nil, err
	}
	h.charts.mu.Lock()
	defer h.charts.mu.Unlock()
	old := h.charts.known[name]
	if old != nil && (old.revision == now.Revision || old.running && time.Since(old.at) < redraw) {
		return old, nil
	}
	data, err := h.chartData(ctx, name)
	if err != nil {
		return nil, err
	}
	d := &drawn{revision: now.Revision, at: time.Now(), running: data.Record.State == tuner.StudyRunning, learnt: newLesson(data)}
	if old != nil && old.learnt == d.learnt {
		d.matter = old.matter
	} else if d.matter, err = h.matter(ctx, data); err != nil {
		return nil, err
	}
	d.figures = data.Figures(d.matter)
	if d.packed, err = packed(data.Columns(d.matter)); err != nil {
		return nil, fmt.Errorf("lay out the charts of %s: %w", name, err)
	}
	if h.charts.known == nil || len(h.charts.known) >= keptStudies {
		h.charts.known = map[string]*drawn{}
	}
	h.charts.known[name] = d
	return d, nil
}

// lesson counts what the models learn from, which only grows: while it is the same, so is what they say.
type lesson struct{ finished, void int }

func newLesson(d *chart.Data) lesson {
	l := lesson{finished: d.Finished()}
	for i := range d.Rows {
		if d.Rows[i].Void {
			l.void++
		}
	}
	return l
}

// packed are columns as compressed JSON.
func packed(columns any) ([]byte, error) {
	text, err := json.Marshal(columns)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	pack := gzip.NewWriter(&b)
	_, err = pack.Write(text)
	err = errors.Join(err, pack.Close()) // before its bytes are taken
	return b.Bytes(), err
}

// chartData reads a study for its charts.
func (h *Handler) chartData(ctx context.Context, name string) (*chart.Data, error) {
	record, err := h.reader.Study(ctx, name)
	if err != nil {
		return nil, err
	}
	events, last, err := h.reader.Events(ctx, name, 0, chartEvents)
	if err != nil {
		return nil, err
	}
	if len(events) == chartEvents {
		newest, end, err := h.reader.Events(ctx, name, -chartEvents, chartEvents)
		if err != nil {
			return nil, err
		}
		events = append(events, newest[max(0, len(newest)-int(min(end-last, chartEvents))):]...)
	}
	return chart.Collect(record, events, func(visit func(*trial.Trial) error) error { return h.walk(ctx, name, visit) })
}

// matter asks the models what matters, as `sgtune show` does: of the first trial and the newest. They need more of a trial
// than charts do, so these are read again.
func (h *Handler) matter(ctx context.Context, d *chart.Data) ([]tuner.Importance, error) {
	history, _, err := h.reader.TrialPage(ctx, d.Record.Name, tuner.TrialQuery{Desc: true, Limit: tuner.LookTrials - 1})
	if err != nil {
		return nil, err
	}
	first, _, err := h.reader.TrialPage(ctx, d.Record.Name, tuner.TrialQuery{Limit: 1})
	if err != nil {
		return nil, err
	}
	slices.Reverse(history)
	if len(first) > 0 && len(history) > 0 && first[0].Number < history[0].Number {
		history = append(first, history...)
	}
	return tuner.Look(d.Record, history, d.Events[:min(len(d.Events), chartEvents)]).Importances, nil
}

func (h *Handler) walk(ctx context.Context, name string, visit func(*trial.Trial) error) error {
	if w, ok := h.reader.(walker); ok {
		return w.WalkTrials(ctx, name, visit)
	}
	all, err := h.reader.Trials(ctx, name)
	if err != nil {
		return err
	}
	for _, t := range all {
		if err := visit(t); err != nil {
			return err
		}
	}
	return nil
}

// life reads what a trial's folder says of its time. What cannot be read is missing from the charts, which say so.
func (h *Handler) life(s *tuner.Summary, t *trial.Trial) *chart.Life {
	e := chart.Evidence{Simulated: s.Simulated}
	if log, info, err := h.openFile(t.Study, t, serverLogName); err == nil {
		defer func() { _ = log.Close() }() // only read
		e.Log = sizedFile{log, info.Size()}
	}
	if guard, info, err := h.openFile(t.Study, t, "guard.jsonl"); err == nil {
		defer func() { _ = guard.Close() }() // only read
		e.Guard = make([]byte, min(info.Size(), maxEvidence))
		n, _ := guard.ReadAt(e.Guard, 0) // a file that grows or shrinks meanwhile: what came is used
		e.Guard = e.Guard[:n]
	}
	return chart.TrialLife(t, e)
}

// sizedFile is an open log with its size as it was opened.
type sizedFile struct {
	*os.File
	size int64
}

// Size implements chart.Log.
func (f sizedFile) Size() int64 { return f.size }

// lifeJSON is a trial's charts as they are sent.
func (h *Handler) lifeJSON(s *tuner.Summary, t *trial.Trial) ([]byte, error) {
	return json.Marshal(h.life(s, t).Columns())
}

// figureTable is a chart's whole table; ok is false for a chart there is not.
func (h *Handler) figureTable(ctx context.Context, study, name string) (t chart.Table, ok bool, err error) {
	data, err := h.chartData(ctx, study)
	if err != nil {
		return chart.Table{}, false, err
	}
	var matter []tuner.Importance
	if name == "matter" {
		if matter, err = h.matter(ctx, data); err != nil {
			return chart.Table{}, false, err
		}
	}
	f, ok := data.Figure(name, matter, 0)
	return f.Table, ok, nil
}

// chartWording are the functions of the charts' templates.
var chartWording = template.FuncMap{
	"figure": func(study, base string, f chart.Figure) shownFigure {
		return shownFigure{Figure: f, Study: study, Base: base}
	},
}

// shownFigure is a figure with the addresses around it.
type shownFigure struct {
	chart.Figure
	Study, Base string
}
