package web

import (
	"fmt"
	"strings"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// fact is one line of the verdict's box.
type fact struct{ Name, Text string }

// launches are the trials a verdict rests on.
type launches struct {
	record   *tuner.Record
	study    *tuner.Study // its study file, nil when it cannot be read
	verdict  *tuner.Verdict
	picked   *trial.Trial   // search trial of the candidate, nil when it is not stored
	today    []*trial.Trial // confirmation launches of what runs today that count
	proposed []*trial.Trial // and of the candidate
}

func newLaunches(r *tuner.Record, v *tuner.Verdict, picked *trial.Trial, confirms []*trial.Trial) *launches {
	l := &launches{record: r, study: tuner.StoredStudy(r), verdict: v, picked: picked}
	today, proposed := tuner.Key(r.BaselineConfig), tuner.Key(v.Config)
	for _, t := range confirms {
		if t.State != trial.Complete || t.Void != "" || t.Value == nil {
			continue
		}
		switch tuner.Key(t.Config) {
		case today:
			l.today = append(l.today, t)
		case proposed:
			l.proposed = append(l.proposed, t)
		}
	}
	return l
}

// hostFacts are the lines of the box: of a verdict, when there is one, and of the machine.
func (b *studyBody) hostFacts(l *launches) []fact {
	var out []fact
	add := func(name, text string) {
		if text != "" {
			out = append(out, fact{name, text})
		}
	}
	if l != nil {
		if b.Verdict.Answer == benchmark.AnswerBetter {
			add("Margin", l.margin(b.Overview))
			add("Quality", l.quality())
		}
		add("Wait", l.wait())
	}
	if b.Alert == nil { // else it has been told
		add("Machine", machineText(b.Releases))
	}
	add("After", b.AfterDone)
	if l != nil {
		add("Why", upper(b.Verdict.Why))
	}
	return out
}

// machineText is the state of the host at the end.
func machineText(releases string) string {
	if releases == "clean: verified after the last trial" {
		return "clean: GPU memory released, port free, nothing left behind"
	}
	return releases
}

// margin is how near the limits the candidate ran.
func (l *launches) margin(o *tuner.Overview) string {
	var parts []string // GPU memory in GiB and then host memory in GB, never both in one clause
	gpu, ram := int64(-1), int64(-1)
	for _, t := range append([]*trial.Trial{l.picked}, l.proposed...) {
		if t == nil {
			continue
		}
		gpu, ram = lesser(gpu, t.LowWater), lesser(ram, t.MinRAM)
	}
	if gpu > 0 {
		parts = append(parts, fmt.Sprintf("GPU memory free at the least %.1f GiB", float64(gpu)/(1<<30)))
	}
	for _, f := range o.Failures {
		if f.Outcome == trial.GPUOOM && f.Lowest != nil {
			parts = append(parts, "nearest failure at mem-fraction-static "+sglang.FormatValue(*f.Lowest))
			break
		}
	}
	if ram > 0 {
		parts = append(parts, fmt.Sprintf("host RAM free at the least %s GB", Number(float64(ram)/1e9)))
	}
	if l.picked != nil && l.picked.Memory.HostPoolGB > 0 {
		text := "host pools " + Number(l.picked.Memory.HostPoolGB*float64(max(1, l.picked.Memory.TP)))
		if l.study != nil && l.study.Host.RAMBudgetBytes > 0 {
			text += " of " + Number(l.study.Host.RAMBudgetBytes/1e9)
		}
		parts = append(parts, text+" GB")
	}
	return strings.Join(parts, "; ")
}

// lesser is the smaller of two figures of which negative or zero ones are unknown.
func lesser(a, b int64) int64 {
	if b <= 0 || a > 0 && a < b {
		return a
	}
	return b
}

// quality says what becomes of answers.
func (l *launches) quality() string {
	all := sglang.Merge(l.record.Server.Flags, l.verdict.Config)
	for _, name := range all.Names() {
		if why := tuner.Lossy(name, all[name]); why != "" {
			return why
		}
	}
	if len(l.today) > 0 && l.picked != nil && l.picked.Memory.KVDtype != "" {
		if kind := strings.TrimPrefix(l.picked.Memory.KVDtype, "torch."); kind == strings.TrimPrefix(l.today[0].Memory.KVDtype, "torch.") {
			return "KV cache " + kind + ", unchanged"
		}
	}
	return "nothing that may change answers is changed"
}

// wait compares how long the first token took at the verdict's load level.
func (l *launches) wait() string {
	from, to := l.ttft(l.today), l.ttft(l.proposed)
	if len(from) == 0 || len(to) == 0 {
		return ""
	}
	limit := ""
	if l.study != nil && l.study.Objective.SLO.TTFTP95 > 0 {
		limit = " (limit " + tuner.FormatDuration(l.study.Objective.SLO.TTFTP95) + ")"
	}
	return l.compared(from, to) + limit
}

// compared says whether the wait changed.
func (l *launches) compared(from, to []float64) string {
	text := fmt.Sprintf("TTFT p95 %s → %s s", Number(mean(from)/1e3), Number(mean(to)/1e3))
	switch c := benchmark.Compare(from, to); c.Answer { // "better" is a larger value, and that is a longer wait
	case benchmark.AnswerBetter:
		return fmt.Sprintf("%s, longer by %.1f%% (%s to %s)", text, 100*c.Gain, Percent(c.Low), Percent(c.High))
	case benchmark.AnswerWorse:
		return fmt.Sprintf("%s, shorter by %.1f%% (%s to %s)", text, -100*c.Gain, Percent(c.Low), Percent(c.High))
	case benchmark.AnswerNoDifference:
		return text + ", no difference found"
	}
	return text + ", too few launches to compare"
}

func (l *launches) ttft(of []*trial.Trial) []float64 {
	var out []float64
	for _, t := range of {
		for _, level := range t.Levels {
			if level.Concurrency == l.verdict.Level && level.Report != nil && level.Report.TTFTms != nil && level.Report.TTFTms.P95 > 0 {
				out = append(out, level.Report.TTFTms.P95)
			}
		}
	}
	return out
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
