package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"sgtune/sglang"
)

// Diagnose says why a server ended, or how it is, from its log and what is known about it beside the
// log. first and last are the first and the last event of each kind that the log gave. It is pure.
func Diagnose(log sglang.LogFacts, first, last map[string]sglang.Event, c Context) Verdict {
	return Classify(factsOf(log, first, last, c))
}

// factsOf brings a log and its context into the form of a trial that sgtune ran itself.
func factsOf(log sglang.LogFacts, first, last map[string]sglang.Event, c Context) Facts {
	f := Facts{
		Log: log, First: first, Last: last, Flags: flagsOf(c.Flags), KernelOOM: counter(c.KernelOOMKills), CgroupOOM: counter(c.CgroupOOMKills),
		HostRAM: bytesOf(c.HostRAMGB), Elapsed: seconds(c.ElapsedS), Timeout: seconds(c.ReadyTimeoutS), Silent: seconds(c.LogSilentS), Context: &c,
	}
	f.Exit, f.Dead = c.exit()
	if c.StoppedBy != nil && *c.StoppedBy != "" {
		f.Ending, f.Reason = endOfStop(*c.StoppedBy), *c.StoppedBy
	}
	for _, p := range c.Probes {
		count := 1
		if p.Count != nil {
			count = clampInt(*p.Count)
		}
		seen := Probe{Path: p.Path, Status: p.Status.Code, Word: p.Status.Word, Count: count, Refusal: said(p.Old), From: said(p.From)}
		if p.BodyBytes != nil {
			seen.Body = clampInt(*p.BodyBytes)
		}
		f.Probes = append(f.Probes, seen)
	}
	return f
}

// said is a free value of a context as words.
func said(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

func seconds(v *float64) time.Duration {
	const most = 1e9 // 30 years
	if v == nil || math.IsNaN(*v) {
		return 0
	}
	return time.Duration(max(0, min(most, *v)) * float64(time.Second))
}

// counter is a counter of the kernel, -1 when it is not known.
func counter(v *float64) int64 {
	if v == nil {
		return -1
	}
	return int64(max(0, clampInt(*v)))
}

func bytesOf(gb *float64) int64 {
	if gb == nil || !(*gb > 0) || *gb > 1e9 {
		return 0
	}
	return int64(*gb * 1e9)
}

// schema is the version of the JSON form of a verdict.
const schema = 1

// JSON is the verdict in the form of the failure vocabulary: one object with the keys of an expect
// file, indented, with a newline at its end.
func (v Verdict) JSON() ([]byte, error) {
	out := struct {
		Schema   int            `json:"schema"`
		Outcome  Outcome        `json:"outcome"`
		Phase    sglang.Phase   `json:"phase"`
		Cause    string         `json:"cause"`
		Blames   Blame          `json:"blames_config"`
		Numbers  map[string]any `json:"numbers"`
		Findings []string       `json:"findings"`
		Line     int            `json:"evidence_line"`
		Also     []int          `json:"evidence_also"`
		Advice   []string       `json:"advice"`
		Text     string         `json:"advice_text"`
	}{
		schema, v.Outcome, v.Phase, v.Cause, v.Blames, v.AllNumbers(), []string{}, v.Line, append([]int{}, v.Also...), append([]string{}, v.Advice...), v.Text,
	}
	for _, f := range v.Findings {
		out.Findings = append(out.Findings, f.Name)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("write the verdict %s / %s as JSON: %w", v.Outcome, v.Cause, err)
	}
	return b.Bytes(), nil
}

// AllNumbers is every figure of the verdict by its name, lists included: what "numbers" of the JSON
// form holds.
func (v Verdict) AllNumbers() map[string]any {
	out := make(map[string]any, len(v.Numbers)+2)
	for name, n := range v.Numbers {
		if !math.IsNaN(n) && !math.IsInf(n, 0) {
			out[name] = n
		}
	}
	if len(v.FailingRanks) > 0 {
		out["failing_ranks"] = v.FailingRanks
	}
	if len(v.RejectedFlags) > 0 {
		out["rejected_flags"] = v.RejectedFlags
	}
	return out
}
