package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sgtune/benchmark"
	"sgtune/tuner"
	"sgtune/web"
)

// readWorkload reads the file, or makes up the set, that --workload names.
func (o *replayOptions) readWorkload(given func(string) bool) (*benchmark.Workload, error) {
	generated := benchmark.IsGenerated(o.workload)
	if err := o.checkSource(generated, given); err != nil {
		return nil, err
	}
	if generated {
		w, err := benchmark.Generate(o.generate())
		if err != nil {
			return nil, usagef("--workload: %w", err)
		}
		return w, nil
	}
	read := benchmark.ReadOptions{BlockTokens: o.blockTokens, TimeUnit: o.timeUnit}
	if o.format != "auto" {
		read.Format = o.format
	}
	w, err := benchmark.ReadWorkloadAs(o.workload, read)
	if err != nil {
		return nil, fileMistake(o.workload, err)
	}
	return w, nil
}

// linePlace is the line that an error of a workload file names, behind the file's name.
var linePlace = regexp.MustCompile(`^:(\d+)(?::(\d+))?: `)

// fileMistake is an error of a workload file as a usage error that begins with the file's name.
func fileMistake(path string, err error) error {
	m := tuner.Mistake{File: path}
	text, found := strings.CutPrefix(err.Error(), path)
	if !found {
		return usagef("%w", err)
	}
	if place := linePlace.FindStringSubmatch(text); place != nil {
		m.Line, _ = strconv.Atoi(place[1]) // digits
		m.Col, _ = strconv.Atoi(place[2])
		m.Col, text = max(1, m.Col), text[len(place[0]):]
	}
	m.Text = strings.TrimPrefix(text, ": ")
	switch {
	case !errors.Is(err, fs.ErrNotExist):
	case strings.ContainsAny(path, "./"):
		m.Text = "the workload does not exist; check the path"
	default: // a word, no path
		m.Text = "there is no such file, and no such set; generated sets are " + strings.Join(benchmark.GeneratedNames(), ", ")
	}
	return tuner.Problems{m}
}

// checkSource finds flags of files at a generated set, and of sets at a file.
func (o *replayOptions) checkSource(generated bool, given func(string) bool) error {
	var m mistakes
	if generated {
		for _, name := range []string{"format", "time-unit", "block-tokens"} {
			if given(name) {
				m.add("--%s belongs to workload files; %s is a generated set", name, o.workload)
			}
		}
		return m.err()
	}
	for _, name := range setFlags {
		if given(name) {
			m.add("--%s belongs to a generated set, and --workload %.80s names a file; sets are %s", name, o.workload, strings.Join(benchmark.GeneratedNames(), ", "))
			break
		}
	}
	return m.err()
}

// setFlags are the flags of generatedSet.
var setFlags = []string{
	"random-input-len", "random-output-len", "random-range-ratio", "gsp-num-groups", "gsp-prompts-per-group", "gsp-system-prompt-len",
	"gsp-question-len", "gsp-output-len", "gsp-range-ratio", "gsp-num-turns", "gsp-ordered", "gsp-group-distribution", "gsp-zipf-alpha",
}

// generate are the options of the generated set. One pass is as long as a level that counts its requests.
func (o *replayOptions) generate() benchmark.GenerateOptions {
	g := benchmark.DefaultGenerateOptions(o.workload)
	if o.requests > 0 {
		g.Requests = o.requests
	}
	g.Seed = o.seed
	g.RandomInputLen, g.RandomOutputLen, g.RandomRangeRatio = o.set.randomInput, o.set.randomOutput, o.set.randomRatio
	g.GSPNumGroups, g.GSPPromptsPerGroup = o.set.groups, o.set.perGroup
	g.GSPSystemPromptLen, g.GSPQuestionLen, g.GSPOutputLen = o.set.systemPrompt, o.set.question, o.set.gspOutput
	g.GSPRangeRatio, g.GSPNumTurns, g.GSPOrdered = o.set.gspRatio, o.set.turns, o.set.ordered
	g.GSPGroupDistribution, g.GSPZipfAlpha = o.set.distribution, o.set.zipfAlpha
	return g
}

// summarize is what --dry-run shows: the workload's summary, with the answers that are asked for.
func (o *replayOptions) summarize(w *benchmark.Workload) benchmark.Summary {
	s := w.Summary()
	if n := o.outputTokens; n > 0 {
		s.OutputTokens = &benchmark.TokenLengths{Min: n, Mean: float64(n), P50: n, P90: n, P99: n, Max: n, Total: int64(n) * int64(s.Requests)}
		for i := range s.First {
			s.First[i].OutputTokens = &n
		}
	}
	return s
}

// workloadText is the summary for a person, with how the load will end.
func (r *replayRun) workloadText() string {
	s := r.summary
	var f factLines
	fmt.Fprintf(&f.b, "workload %s: %s\n", r.options.workload, sourceText(s, r.generated()))
	f.add("rows", "%s", rowsText(s))
	if s.InputTokens != nil {
		f.add("prompts", "%s", tokensText(s.InputTokens))
	}
	if s.OutputTokens != nil {
		f.add("answers", "%s", tokensText(s.OutputTokens))
	}
	f.add("arrivals", "%s", arrivalsText(s))
	f.add("sharing", "%s", sharingText(s, r.generated()))
	for _, note := range s.Notes {
		f.add("note", "%s", note)
	}
	if r.options.dryRun {
		return f.b.String()
	}
	f.add("load", "%s", r.loadText())
	return f.b.String()
}

func sourceText(s benchmark.Summary, generated bool) string {
	switch {
	case generated:
		return "a generated set"
	case s.TimeUnit != "":
		return fmt.Sprintf("format %s, times in %s", s.Format, s.TimeUnit)
	}
	return "format " + s.Format
}

func rowsText(s benchmark.Summary) string {
	text := grouped(s.Kept)
	if s.Kept != s.Rows {
		var why []string
		for _, reason := range slices.Sorted(maps.Keys(s.Dropped)) {
			why = append(why, fmt.Sprintf("%s %s", grouped(s.Dropped[reason]), reason))
		}
		text = fmt.Sprintf("%s of %s, dropped: %s", text, grouped(s.Rows), strings.Join(why, ", "))
	}
	if s.Requests != s.Kept {
		text += fmt.Sprintf("; %s requests, every turn counted", grouped(s.Requests))
	}
	return text
}

func tokensText(t *benchmark.TokenLengths) string {
	if t.Min == t.Max {
		return fmt.Sprintf("%s tokens each, %s in all%s", grouped(t.Min), grouped(int(t.Total)), guessText(t))
	}
	return fmt.Sprintf("%s to %s tokens, mean %s, p50 %s, p90 %s, p99 %s, %s in all%s", grouped(t.Min), grouped(t.Max),
		web.Number(t.Mean), grouped(t.P50), grouped(t.P90), grouped(t.P99), grouped(int(t.Total)), guessText(t))
}

func guessText(t *benchmark.TokenLengths) string {
	text := ""
	if t.Estimated {
		text = "; estimated from the length of texts"
	}
	if t.Unsaid > 0 {
		text += fmt.Sprintf("; the file has no length for %s: the most that is asked for counts", count(t.Unsaid, "row"))
	}
	return text
}

func arrivalsText(s benchmark.Summary) string {
	a := s.Arrivals
	if a == nil {
		return "no times"
	}
	text := fmt.Sprintf("over %s s", web.Number(a.DurationS))
	if a.MeanRate != nil {
		text += fmt.Sprintf(", %s requests/s", web.Number(*a.MeanRate))
	}
	if a.CV != nil {
		text += fmt.Sprintf(", variation of the gaps (CV) %s", plainNumber(math.Round(*a.CV*1e4)/1e4))
	}
	return text
}

func sharingText(s benchmark.Summary, generated bool) string {
	p := s.Prefix
	switch {
	case p == nil && generated:
		return "no prompt shares a prefix with another"
	case p == nil:
		return "nothing is known of shared prefixes"
	}
	if p.BlockTokens == 1 {
		return sharePercent(p.TokenRatio) + " of the prompt tokens repeat a prefix"
	}
	return fmt.Sprintf("%s of the prompt tokens repeat a prefix (%s of the blocks of %s tokens)", sharePercent(p.TokenRatio), sharePercent(p.BlockRatio), grouped(p.BlockTokens))
}

// loadText says the load and how it ends.
func (r *replayRun) loadText() string {
	names := make([]string, len(r.loads))
	for i, l := range r.loads {
		names[i] = l.String()
	}
	e := r.end
	text := strings.Join(names, ", then ")
	switch {
	case e.why != "":
		text += "; " + e.why
	case e.requests > 0 && e.duration > 0:
		text += fmt.Sprintf("; ends after %s or %s", count(e.requests, "request"), short(e.duration))
	case e.requests > 0:
		text += fmt.Sprintf("; ends after %s", count(e.requests, "request"))
	default:
		text += fmt.Sprintf("; measured for %s", short(e.duration))
	}
	if n := r.warmup(r.loads[0]); n > 0 {
		text += fmt.Sprintf("; %s of warm-up before", count(n, "request"))
	}
	return text
}

// endpointPath is where an endpoint's requests go.
func endpointPath(endpoint string) string {
	return map[string]string{
		benchmark.EndpointGenerate: "/generate", benchmark.EndpointCompletions: "/v1/completions", benchmark.EndpointChat: "/v1/chat/completions",
	}[endpoint]
}

// serverText is what was found at the address, and what is sent there.
func (r *replayRun) serverText() string {
	var f factLines
	d := r.detected
	parts := []string{r.server.shown}
	if p := r.product(); p != "" {
		parts = append(parts, p)
	}
	if r.model != "" {
		parts = append(parts, "model "+r.model)
	}
	if d.ContextTokens > 0 {
		parts = append(parts, "context "+grouped(d.ContextTokens))
	}
	f.add("server", "%s", strings.Join(parts, ", "))
	path := endpointPath(r.endpoint)
	what := "texts as they are"
	switch {
	case r.kinds.lengths && r.palette.Approximate:
		what = r.palette.Note
	case r.kinds.lengths && r.endpoint == benchmark.EndpointChat:
		what = "words in one user message"
	case r.kinds.lengths:
		what = "token ids, prompts of exact length"
	}
	f.add("endpoint", "%s; %s", path, what)
	most := r.workload.MaxTokens()
	if n := r.options.outputTokens; n > 0 && r.summary.InputTokens != nil {
		most = r.summary.InputTokens.Max + n
	}
	switch {
	case d.ContextTokens > 0 && most > d.ContextTokens:
		f.add("note", "the longest request needs %s tokens, more than the server's context: it will fail", grouped(most))
	case d.MaxTotalTokens > 0 && most > d.MaxTotalTokens:
		f.add("note", "the longest request needs %s tokens, more than the server's KV cache holds (%s): it will fail", grouped(most), grouped(d.MaxTotalTokens))
	}
	for _, note := range d.Notes {
		f.add("note", "%s", note)
	}
	return f.b.String()
}
