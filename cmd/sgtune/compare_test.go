package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
)

// reportText is a replay report with this throughput; each change sets or, with nil, removes a key. A dot
// in a key goes down one object.
func reportText(t *testing.T, tokS float64, changes map[string]any) []byte {
	t.Helper()
	text := fmt.Sprintf(`{"schema": 1, "requests": {"sent": 400, "ok": 400, "failed": {}},
		"tokens": {"wanted": 120000, "got": 120000, "prompt": 438400, "cached": 52608},
		"concurrency": {"mean": 31.2, "peak": 32}, "output_tok_s": %g, "output_tok_s_low": %g, "output_tok_s_high": %g, "requests_s": %g,
		"ttft_ms": {"p50": 220, "p90": 290, "p95": 330, "p99": 440, "mean": 242, "max": 660}, "tpot_ms": {"p50": 15.5, "p90": 20, "p95": 23.25, "p99": 31, "mean": 17, "max": 46},
		"client": {"cpu_share": 0.12, "send_lag_ms": {"p99": 0.8}}, "steady": true, "valid": true, "cache_state": "flushed",
		"setup": {"endpoint": "generate", "model": "/models/K", "server": "SGLang 0.5.23", "load": "32 clients", "workload": "chat.jsonl"}}`, tokS, tokS*0.98, tokS*1.02, tokS/300)
	var report map[string]any
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	for key, v := range changes {
		at := report
		path := strings.Split(key, ".")
		for _, name := range path[:len(path)-1] {
			at = at[name].(map[string]any)
		}
		if at[path[len(path)-1]] = v; v == nil {
			delete(at, path[len(path)-1])
		}
	}
	out, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// reportFolder writes one report a value into a new folder.
func reportFolder(t *testing.T, changes map[string]any, values ...float64) string {
	t.Helper()
	dir := t.TempDir()
	for i, v := range values {
		writeReport(t, filepath.Join(dir, fmt.Sprintf("%d.json", i+1)), reportText(t, v, changes))
	}
	return dir
}

func writeReport(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// compared is what --json prints.
func compared(t *testing.T, args ...string) (code int, r compareResult) {
	t.Helper()
	code, out, errs := call(t, append([]string{"compare", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil || errs != "" {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
	}
	return code, r
}

// fourLaunches are four launches, logarithms of which have the mean 7 and the spread 0.0115470.
var fourLaunches = []float64{math.Exp(6.99), math.Exp(6.99), math.Exp(7.01), math.Exp(7.01)}

func shifted(by float64) []float64 {
	out := make([]float64, len(fourLaunches))
	for i, v := range fourLaunches {
		out[i] = v * math.Exp(by)
	}
	return out
}

func TestCompareAnswers(t *testing.T) {
	t.Parallel()
	distinct := func(dir string) string { // reports with the same figures are still different replays
		for i := range 4 {
			path := filepath.Join(dir, fmt.Sprintf("%d.json", i+1))
			text, err := os.ReadFile(path)
			if err == nil {
				writeReport(t, path, []byte(strings.Replace(string(text), `"schema":1`, fmt.Sprintf(`"schema":1,"seed":%d`, i), 1)))
			}
		}
		return dir
	}
	for _, tt := range []struct {
		name            string
		base, candidate []float64
		code            int
		answer          string
		gain            float64
		needed          int
	}{
		{"better", fourLaunches, shifted(0.1), 0, "better", math.Expm1(0.1), 0},
		{"worse", fourLaunches, shifted(-0.1), 0, "worse", math.Expm1(-0.1), 0},
		// t(0.975, 6)·0.0115470·sqrt(2/4) = 0.0199790; seven launches give t(0.975, 12)·0.0115470·sqrt(2/7) = 0.0134481.
		{"no difference", fourLaunches, shifted(0.0135), 0, "no difference found", math.Expm1(0.0135), 7},
		{"just enough", fourLaunches, shifted(0.02), 0, "better", math.Expm1(0.02), 0},
		{"two of three", fourLaunches, shifted(0.1)[:2], 1, "not confirmed", math.Exp(7.09-7) - 1, 0},
		{"one each", fourLaunches[:1], shifted(0.1)[:1], 1, "not confirmed", math.Expm1(0.1), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, r := compared(t, distinct(reportFolder(t, nil, tt.base...)), distinct(reportFolder(t, nil, tt.candidate...)))
			if code != tt.code || r.Answer != tt.answer || r.N != [2]int{len(tt.base), len(tt.candidate)} {
				t.Errorf("exit %d, %q of %v, want %d, %q", code, r.Answer, r.N, tt.code, tt.answer)
			}
			if r.Gain == nil || math.Abs(*r.Gain-tt.gain) > 1e-6 || r.Needed != tt.needed {
				t.Errorf("gain %v, needed %d, want %g, %d", r.Gain, r.Needed, tt.gain, tt.needed)
			}
			interval := tt.answer != benchmark.AnswerNotConfirmed
			if (r.Low != nil) != interval || (r.High != nil) != interval || (r.Detectable != nil) != interval || (r.MannWhitneyP != nil) != interval {
				t.Errorf("interval %v %v, detectable %v, p %v", r.Low, r.High, r.Detectable, r.MannWhitneyP)
			}
			if !strings.HasPrefix(r.Text, tt.answer+": ") || strings.Contains(r.Text, "\n") {
				t.Errorf("text %q", r.Text)
			}
		})
	}
}

// Of latencies less is better: the gain turns its sign, the change in the table does not.
func TestCompareLatency(t *testing.T) {
	t.Parallel()
	side := func(p95 ...float64) string {
		dir := t.TempDir()
		for i, v := range p95 {
			writeReport(t, filepath.Join(dir, fmt.Sprintf("%d.json", i)), reportText(t, 1000+float64(i), map[string]any{"ttft_ms.p95": v}))
		}
		return dir
	}
	code, r := compared(t, side(330, 331, 332), side(264, 265, 266), "--metric", "ttft_p95")
	if code != 0 || r.Answer != "better" || r.Better != "lower" || r.Unit != "ms" || math.Abs(*r.Gain-(1-265.0/331)) > 1e-4 || !(*r.Low < *r.Gain && *r.Gain < *r.High) || *r.Low < 0.19 {
		t.Errorf("exit %d: %s, gain %v (%v to %v)", code, r.Text, *r.Gain, *r.Low, *r.High)
	}
	if row := r.Rows[0]; row.Metric != "ttft_p95" || math.Abs(*row.Change+*r.Gain) > 1e-12 || row.Answer != "better" {
		t.Errorf("row %+v", row)
	}
	if r.Rows[1].Metric != "output_tok_s" || r.Rows[1].Answer != "no difference found" {
		t.Errorf("row %+v", r.Rows[1])
	}
	if code, r := compared(t, side(264, 265, 266), side(330, 331, 332), "--metric", "ttft_p95"); code != 0 || r.Answer != "worse" || *r.Gain > -0.2 {
		t.Errorf("exit %d: %s, gain %v", code, r.Text, *r.Gain)
	}
	if _, r := compared(t, side(330), side(264), "--metric", "tpot_mean"); *r.Gain != 0 {
		t.Errorf("tpot_mean: %v", *r.Gain)
	}
	if code, r := compared(t, side(330), side(264), "--metric", "itl_p50"); code != 1 || r.Gain != nil || !strings.Contains(r.Text, "no ITL p50 in it") {
		t.Errorf("a figure that no report has: exit %d, %s", code, r.Text)
	}
}

func TestCompareWarns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		changes map[string]any
		want    []string // each in one warning; none: no warning
	}{
		{"alike", nil, nil},
		{"cache state", map[string]any{"cache_state": "cold"}, []string{"cache state differs: base flushed; candidate cold"}},
		{"load", map[string]any{"setup.load": "64 clients"}, []string{"load differs: base 32 clients; candidate 64 clients"}},
		{"arrivals", map[string]any{"setup.load": "2.5 requests/s, Poisson"}, []string{"candidate 2.5 requests/s, Poisson"}},
		{"endpoint", map[string]any{"setup.endpoint": "chat"}, []string{"endpoint differs: base generate; candidate chat"}},
		{"model", map[string]any{"setup.model": "/models/Q"}, []string{"model differs"}},
		{"server", map[string]any{"setup.server": "vLLM 0.9"}, []string{"server differs: base SGLang 0.5.23; candidate vLLM 0.9"}},
		{"workload", map[string]any{"workload": map[string]any{"format": "mooncake", "requests": 12}}, []string{"workload differs: base chat.jsonl; candidate chat.jsonl (mooncake, 12 requests)"}},
		{"file", map[string]any{"setup.workload": "code.jsonl"}, []string{"workload differs: base chat.jsonl; candidate code.jsonl"}},
		{"unknown file", map[string]any{"setup.workload": ""}, nil},
		{"prompts", map[string]any{"tokens.prompt": 450000}, []string{"lengths differ: prompts have 1,096 tokens on average in base, 1,125 in candidate"}},
		{"cache hits", map[string]any{"tokens.cached": 200000}, []string{"cache hits differ: 12.0% of the prompt tokens in base, 45.6% in candidate"}},
		{"hardly longer prompts", map[string]any{"tokens.prompt": 446000}, nil},
		{"answers", map[string]any{"tokens.got": 100000}, []string{"lengths differ: answers have 300 tokens on average in base, 250 in candidate"}},
		{"failures", map[string]any{"requests": map[string]any{"sent": 412, "ok": 400, "failed": map[string]any{"timeout": 10, "reset": 2}}}, []string{"candidate: 12 of 412 requests failed (reset, timeout)"}},
		{"not steady", map[string]any{"steady": false}, []string{"candidate: throughput was not steady"}},
		{"SLO", map[string]any{"slo": map[string]any{"ttft_ms": 2000}}, nil},
		{"scaled time", map[string]any{"ttft_resolution_ms": 750}, []string{"candidate is SIMULATED: the figures are a model's, not a machine's, and no latency is known better than 750 ms"}},
		{"remarks", map[string]any{"flags": []string{"not steady: it rose", "server disagrees by 7%", "ended early"}}, []string{"candidate: server disagrees by 7%; ended early"}},
		{"two at once", map[string]any{"cache_state": "warm", "setup.model": "/models/Q"}, []string{"cache state differs", "model differs"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, r := compared(t, reportFolder(t, nil, 1000), reportFolder(t, tt.changes, 1100))
			if len(r.Warnings) != len(tt.want) {
				t.Fatalf("%q, want %q", r.Warnings, tt.want)
			}
			for i, want := range tt.want {
				if !strings.Contains(r.Warnings[i], want) {
					t.Errorf("%q, want %q", r.Warnings[i], want)
				}
			}
		})
	}
}

func TestCompareWarnsWithinASide(t *testing.T) {
	t.Parallel()
	dir := reportFolder(t, nil, 1000, 1010)
	writeReport(t, filepath.Join(dir, "3.json"), reportText(t, 1005, map[string]any{"cache_state": "cold", "steady": false}))
	writeReport(t, filepath.Join(dir, "4.json"), reportText(t, 1900, map[string]any{"valid": false, "invalid": "client_limited", "advice": "the load generator used 93% of its cores"}))
	code, r := compared(t, dir, reportFolder(t, nil, 1000.5, 1010.5, 1005.5))
	want := []string{
		"the reports of base differ in cache state: flushed; cold",
		"base: " + filepath.Join(dir, "4.json") + " is left out: not valid (client_limited): the load generator used 93% of its cores",
		"base: throughput was not steady in 1 of 3 reports",
	}
	if diff := cmp.Diff(want, r.Warnings); diff != "" || code != 0 || r.N != [2]int{3, 3} || r.Answer != "no difference found" {
		t.Errorf("exit %d, %s %v\n%s", code, r.Answer, r.N, diff)
	}
}

// Three reports that are not valid leave the lucky ones.
func TestCompareOfTooManyInvalidReports(t *testing.T) {
	t.Parallel()
	dir := reportFolder(t, nil, 1100, 1101, 1102)
	for i := range 3 {
		writeReport(t, filepath.Join(dir, fmt.Sprintf("bad%d.json", i)), reportText(t, 900+float64(i), map[string]any{"valid": false, "invalid": "failed_requests"}))
	}
	code, r := compared(t, reportFolder(t, nil, 1000, 1001, 1002), dir)
	if code != 1 || r.Answer != "not confirmed" || r.Low != nil || !strings.Contains(r.Text, "3 reports of candidate failed or are not valid") || r.N != [2]int{3, 3} {
		t.Errorf("exit %d, %s", code, r.Text)
	}
	for _, row := range r.Rows {
		if row.Answer != "not confirmed" || row.Low != nil {
			t.Errorf("an answer among the rows: %+v", row)
		}
	}
}

func TestCompareOfOneInvalidReport(t *testing.T) {
	t.Parallel()
	bad := reportFolder(t, map[string]any{"valid": false, "invalid": "client_limited", "advice": "use fewer clients"}, 1500)
	code, out, errs := call(t, "compare", reportFolder(t, nil, 1000), bad)
	if code != 1 || errs != "" || !strings.Contains(out, "not confirmed: candidate has no report that counts") || !strings.Contains(out, "client_limited): use fewer clients") || strings.Contains(out, "1,500") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, r := compared(t, reportFolder(t, nil, 1000), bad); code != 1 || r.Gain != nil || len(r.Candidate.LeftOut) != 1 || r.N != [2]int{1, 0} {
		t.Errorf("exit %d: %+v", code, r)
	}
}

// A goodput of nothing has no ratio, and is still shown.
func TestCompareOfZero(t *testing.T) {
	t.Parallel()
	code, r := compared(t, reportFolder(t, map[string]any{"goodput_requests_s": 0}, 1000, 1001, 1002), reportFolder(t, map[string]any{"goodput_requests_s": 2}, 1000, 1003, 1004), "--metric", "goodput")
	if code != 1 || r.Answer != "not confirmed" || r.Gain != nil || !strings.Contains(strings.Join(r.Warnings, "\n"), "no SLO was given") || !strings.Contains(r.Text, "goodput requests/s 2 against 0; a value of 0 has no ratio") {
		t.Errorf("exit %d: %s", code, r.Text)
	}
}

func TestCompareWarnsOfOrder(t *testing.T) {
	t.Parallel()
	at := func(values []float64, minutes ...int) string {
		dir := t.TempDir()
		for i, m := range minutes {
			start := time.Date(2026, 1, 1, 22, m, 0, 0, time.UTC).Format(time.RFC3339)
			writeReport(t, filepath.Join(dir, fmt.Sprintf("%d.json", i)), reportText(t, values[i]+float64(i), map[string]any{"setup.started_at": start}))
		}
		return dir
	}
	for _, tt := range []struct {
		name            string
		base, candidate []int
		want            string
	}{
		{"in turns", []int{0, 15, 20}, []int{5, 10, 25}, ""},
		{"one after the other", []int{0, 5, 10}, []int{15, 20, 25}, "all of base before candidate"},
		{"the other way", []int{15, 20, 25}, []int{0, 5, 10}, "all of candidate before base"},
	} {
		_, r := compared(t, at(fourLaunches, tt.base...), at(shifted(0.1), tt.candidate...))
		if got := strings.Join(r.Warnings, "\n"); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// levelsText is a report of several load levels.
func levelsText(t *testing.T, levels map[string]float64, order ...string) []byte {
	t.Helper()
	var parts []string
	for _, load := range order {
		parts = append(parts, string(reportText(t, levels[load], map[string]any{"setup.load": load})))
	}
	return []byte(`{"schema": 1, "levels": [` + strings.Join(parts, ",") + `]}`)
}

func TestCompareLevels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	writeReport(t, a, levelsText(t, map[string]float64{"16 clients": 900, "32 clients": 1842, "64 clients": 1900}, "16 clients", "32 clients", "64 clients"))
	writeReport(t, b, levelsText(t, map[string]float64{"32 clients": 1942, "64 clients": 1890, "96 clients": 1600}, "32 clients", "64 clients", "96 clients"))
	_, r := compared(t, a, b)
	if math.Abs(*r.Gain-(1942.0/1900-1)) > 1e-9 || r.Base.Load != "64 clients" || r.Candidate.Load != "32 clients" || len(r.Levels) != 2 || r.Levels[0].Load != "32 clients" ||
		math.Abs(*r.Levels[1].Change-(1890.0/1900-1)) > 1e-9 || !strings.Contains(strings.Join(r.Warnings, " "), "load differs: base 64 clients; candidate 32 clients") {
		t.Errorf("%s, %+v, %q", r.Text, r.Levels, r.Warnings)
	}
	if _, r := compared(t, a, b, "--level", "32"); math.Abs(*r.Gain-(1942.0/1842-1)) > 1e-9 || len(r.Warnings) != 0 {
		t.Errorf("at 32: %s, %q", r.Text, r.Warnings)
	}
	if _, r := compared(t, a, b, "--metric", "ttft_p95"); r.Base.Load != "64 clients" {
		t.Errorf("a latency was taken at %s, not where the throughput is best", r.Base.Load)
	}
	code, _, errs := call(t, "compare", a, b, "--level", "16")
	if code != 2 || !strings.Contains(errs, "b.json was not measured at that load; it has 32, 64, 96") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := call(t, "compare", a, b, "--metric", "concurrency"); code != 1 || errs != "" {
		t.Errorf("concurrency without an SLO: exit %d, %s", code, errs)
	}
}

// Most clients for which the SLO holds.
func TestCompareConcurrency(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	level := func(load string, p95 float64) string {
		return string(reportText(t, 1000, map[string]any{"setup.load": load, "ttft_ms.p95": p95, "slo": map[string]any{"ttft_ms": 400}}))
	}
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	writeReport(t, a, []byte(`{"levels": [`+level("16 clients", 200)+","+level("32 clients", 401)+`]}`))
	writeReport(t, b, []byte(`{"levels": [`+level("16 clients", 150)+","+level("32 clients", 399)+`]}`))
	if _, r := compared(t, a, b, "--metric", "concurrency"); r.Gain == nil || *r.Gain < 0.9999 || *r.Gain > 1.0001 || r.Base.Values[0] != 16 {
		t.Errorf("%s, %+v", r.Text, r.Base)
	}
}

func TestCompareSameReport(t *testing.T) {
	t.Parallel()
	dir := reportFolder(t, nil, 1000)
	path := filepath.Join(dir, "1.json")
	if _, r := compared(t, path, dir); len(r.Warnings) != 1 || r.Warnings[0] != path+" and "+path+" are the same report" || *r.Gain != 0 {
		t.Errorf("%s, %q", r.Text, r.Warnings)
	}
}

// What a report's texts hold must not steer the terminal.
func TestCompareShowsNoControlCharacters(t *testing.T) {
	t.Parallel()
	evil := map[string]any{"setup.model": "K\x1b[2J\r\a", "setup.load": "\x1b]0;x\a", "valid": true, "cache_state": "\u009b31m"}
	_, out, errs := call(t, "compare", reportFolder(t, evil, 1000), reportFolder(t, nil, 1000))
	if strings.ContainsAny(out+errs, "\x1b\r\a\u009b") {
		t.Errorf("%q", out+errs)
	}
}
