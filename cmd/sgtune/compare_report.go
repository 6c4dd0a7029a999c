package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"sgtune/benchmark"
	"sgtune/tuner"
	"sgtune/web"
)

// mostReportBytes bounds one report: a day of seconds and windows is about 25 MB.
const mostReportBytes = 64 << 20

// comparedReport is a file of sgtune replay --out: one report, or one a load level in "levels". What a file
// lacks is unknown, not wrong.
type comparedReport struct {
	benchmark.Report
	Levels []*benchmark.Report `json:"levels"`
}

// readReport reads one report file. Its error is a mistake of the file, in one line.
func readReport(path string) (*comparedLaunch, error) {
	text, err := readAtMost(path, mostReportBytes)
	if err != nil {
		return nil, err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil {
		return nil, jsonMistake(path, text, err)
	}
	_, one := top["output_tok_s"]
	_, many := top["levels"]
	if !one && !many {
		return nil, mistakef(path, "is JSON, but no report of sgtune replay (no \"output_tok_s\" in it); name a file that sgtune replay --out wrote")
	}
	var r comparedReport
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, jsonMistake(path, text, err)
	}
	if r.Schema > benchmark.ReportSchema {
		return nil, mistakef(path, "was written by a newer sgtune (schema %d, this one knows %d); compare it with that one", r.Schema, benchmark.ReportSchema)
	}
	l := &comparedLaunch{name: path, digest: sha256.Sum256(bytes.TrimSpace(text))}
	levels := r.Levels
	if !many {
		levels = []*benchmark.Report{&r.Report}
	}
	if len(levels) == 0 {
		return nil, mistakef(path, "has no load level in it; the replay ended before it measured anything, run it again")
	}
	for _, report := range levels {
		if why := impossible(report); why != "" {
			return nil, mistakef(path, "%s, which no replay writes; the file was changed or is something else", why)
		}
		level := reportLevel(report)
		l.levels = append(l.levels, level)
		l.simulated = l.simulated || report.TTFTResolutionMs > 0
		if s := report.Setup; s != nil && l.started == 0 {
			if at, err := time.Parse(time.RFC3339, s.StartedAt); err == nil {
				l.started = at.Unix()
			}
		}
	}
	return l, nil
}

// readAtMost reads a file, or a pipe like <(zstd -dc report.json.zst).
func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, mistakef(path, "cannot be read: %s; name a report that sgtune replay --out wrote, or a trial as STUDY:12", reason(err))
	}
	defer f.Close() //nolint:errcheck // read only
	large := mistakef(path, "is larger than %d MiB, no report is; name a file that sgtune replay --out wrote", most>>20)
	if info, err := f.Stat(); err == nil && info.Size() > most {
		return nil, large
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, mistakef(path, "cannot be read: %s", reason(err))
	case int64(len(text)) > most: // a pipe
		return nil, large
	case len(bytes.TrimSpace(text)) == 0:
		return nil, mistakef(path, "is empty; name a file that sgtune replay --out wrote")
	}
	return text, nil
}

// mistakef is one mistake in a file: exit 2 and a line that begins with its name.
func mistakef(path, format string, args ...any) error {
	return tuner.Problems{{File: path, Text: fmt.Sprintf(format, args...)}}
}

// jsonMistake says where a file stops being a report.
func jsonMistake(path string, text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset, what := int64(len(text)), "is no JSON"
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return mistakef(path, "is JSON, but no report of sgtune replay (%s at the top); name a file that sgtune replay --out wrote", kind.Value)
	case errors.As(err, &kind):
		return mistakef(path, "is no report of sgtune replay: %q is %s there; name a file that sgtune replay --out wrote", strings.TrimPrefix(kind.Field, "Report."), kind.Value)
	case errors.As(err, &syntax):
		offset = syntax.Offset
		if offset >= int64(len(text)) {
			what = "ends in the middle: it was cut off or is still being written"
		}
	}
	line, col := jsonPlace(text, offset)
	return tuner.Problems{{File: path, Line: line, Col: col, Text: what + "; name a whole file that sgtune replay --out wrote"}}
}

// jsonPlace is the line and column of the last byte read, both from 1.
func jsonPlace(text []byte, offset int64) (line, col int) {
	before := text[:max(0, min(offset-1, int64(len(text))))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// mostFigure bounds every figure of a report and, above zero, its reciprocal: no server, no client and no
// latency in ms comes near, and ratios stay numbers.
const mostFigure = 1e12

// impossible names a figure that cannot be, "" when there is none.
func impossible(r *benchmark.Report) string {
	if r == nil {
		return "a load level in it is null"
	}
	failed := 0
	for _, n := range r.Requests.Failed {
		failed += n
	}
	if r.Requests.Sent < 0 || r.Requests.OK < 0 || failed < 0 || r.Requests.Sent != r.Requests.OK+failed {
		return fmt.Sprintf("of %d requests sent %d are ok and %d failed", r.Requests.Sent, r.Requests.OK, failed)
	}
	wrong := func(name string, v float64) string {
		if v < 0 || v > mostFigure || v > 0 && v < 1/mostFigure {
			return fmt.Sprintf("%s is %g", name, v)
		}
		return ""
	}
	for _, figure := range []struct {
		name string
		v    float64
	}{
		{"output_tok_s", r.OutputTokS},
		{"requests_s", r.RequestsS},
		{"goodput_requests_s", r.GoodputS},
		{"requests.sent", float64(r.Requests.Sent)},
		{"tokens.prompt", float64(r.Tokens.Prompt)},
		{"tokens.cached", float64(r.Tokens.Cached)},
		{"tokens.got", float64(r.Tokens.Got)},
		{"client.cpu_share", r.Client.CPUShare},
		{"client.send_lag_ms.p99", r.Client.SendLagMs.P99},
	} {
		if why := wrong(figure.name, figure.v); why != "" {
			return why
		}
	}
	for _, dist := range latencies {
		d := dist.of(r)
		for _, figure := range statistics {
			if d == nil {
				break
			}
			if why := wrong(dist.name+"_ms."+figure.name, figure.of(d)); why != "" {
				return why
			}
		}
	}
	return ""
}

// reportLevel is a report as a load level.
func reportLevel(r *benchmark.Report) *loadLevel {
	l := &loadLevel{report: r, facts: reportFacts(r), meets: meets(r)}
	if r.Setup != nil {
		l.load = r.Setup.Load
	}
	number, unit, _ := strings.Cut(l.load, " ")
	n, err := strconv.ParseFloat(number, 64)
	switch {
	case l.load == "" && r.Arrivals == nil && r.Concurrency.Peak > 0: // as many as were in flight
		l.clients = r.Concurrency.Peak
		l.load = count(l.clients, "client")
	case err != nil || !(n > 0 && n < mostFigure):
	case strings.HasPrefix(unit, "client"):
		l.clients = int(n)
	case strings.HasPrefix(unit, "requests/s"):
		l.rate = n
	}
	return l
}

// meets reports whether the level's p95 keep all limits, as a study's SLO is judged; not without limits.
func meets(r *benchmark.Report) bool {
	s := r.SLO
	if s == nil || *s == (benchmark.SLOReport{}) {
		return false
	}
	within := func(limit float64, d *benchmark.Distribution) bool { return limit <= 0 || d != nil && d.P95 <= limit }
	return within(s.TTFTms, r.TTFTms) && within(s.TPOTms, r.TPOTms) && within(s.E2Ems, r.E2Ems)
}

// reportFacts are what a report says of its load and its server.
func reportFacts(r *benchmark.Report) runFacts {
	f := runFacts{cache: r.CacheState}
	if s := r.Setup; s != nil {
		f.model, f.server, f.endpoint = s.Model, s.Server, s.Endpoint
	}
	f.workload = workloadText(r.Setup, r.Workload)
	if s := r.SLO; s != nil {
		f.slo = sloText(s)
	}
	return f
}

// workloadText names a workload by what makes it another one: "chat.jsonl (mooncake, 1,200 requests, ...)",
// "" when nothing is known.
func workloadText(s *benchmark.Setup, w *benchmark.Summary) string {
	name := ""
	if s != nil {
		name = s.Workload
	}
	if w == nil {
		return name
	}
	var words []string
	if w.Format != "" && w.Format != name { // a generated set is called as its format
		words = append(words, w.Format)
	}
	if w.Requests > 0 {
		words = append(words, grouped(w.Requests)+" requests")
	}
	if t := w.InputTokens; t != nil {
		words = append(words, grouped(int(t.Total))+" tokens in")
	}
	if t := w.OutputTokens; t != nil {
		words = append(words, grouped(int(t.Total))+" out")
	}
	text := strings.Join(words, ", ")
	if name != "" && text != "" {
		return name + " (" + text + ")"
	}
	return name + text
}

func sloText(s *benchmark.SLOReport) string {
	var words []string
	for _, limit := range []struct {
		name string
		ms   float64
	}{{"ttft", s.TTFTms}, {"tpot", s.TPOTms}, {"e2e", s.E2Ems}} {
		if limit.ms > 0 {
			words = append(words, fmt.Sprintf("%s %s ms", limit.name, web.Number(limit.ms)))
		}
	}
	return strings.Join(words, ", ")
}
