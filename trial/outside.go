package trial

import (
	"fmt"
	"slices"
	"strings"

	"sgtune/benchmark"
	"sgtune/sglang"
)

// What a context says beside the log: flags, dead children, the result of a load and of a quality gate.
// The two results have no fixed form, so their figures are found by the words in their keys.

// flagsOf brings flags of a context to the names of a Config: no dashes in front, dashes inside.
func flagsOf(flags map[string]any) sglang.Config {
	out := make(sglang.Config, len(flags))
	for name, value := range flags {
		out[strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")] = value
	}
	return out
}

// childrenDead reports whether ranks are known to be dead while the main process may live on.
func (f *Facts) childrenDead() bool { return f.Context != nil && truth(f.Context.ChildrenDead) }

// truth is whether a free value says yes: true, a number above 0, a list or word that is not empty.
func truth(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case float64:
		return v > 0
	case string:
		word := strings.ToLower(strings.TrimSpace(v))
		return word != "" && word != "0" && word != "none" && word != "no" && word != "false"
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return false
}

// nodes is how many hosts the server was spread over.
func (f *Facts) nodes() int {
	if f.Context != nil && f.Context.Nnodes != nil {
		return max(1, clampInt(*f.Context.Nnodes))
	}
	if n, ok := f.Flags.Float("nnodes"); ok {
		return max(1, clampInt(n))
	}
	return max(1, int(f.First[kindServerArgs].Values["nnodes"]))
}

// findings of a load by words that its keys, or its own words, may have.
var loadWords = []struct {
	cause string
	signs []string
}{
	{benchmark.InvalidClientHung, []string{"hung", "hang", "stalled", "stuck", "stood still", "no_progress", "frozen"}},
	{benchmark.InvalidClientLimited, []string{"client_limited", "client limited", "cpu bound", "cpu-bound", "gil"}},
	{benchmark.InvalidWrongTokens, []string{"wrong_token", "wrong token", "token_mismatch", "token mismatch", "early stop", "early_stop", "ignore_eos"}},
	{benchmark.InvalidFailedRequests, []string{"failed_requests", "requests failed", "failed requests"}},
}

// badLoad: the load generator's result cannot be used, as the context tells.
func badLoad(f *Facts) (Verdict, bool) {
	if f.Context == nil || f.Context.Workload == nil {
		return Verdict{}, false
	}
	v := Verdict{Outcome: BenchInvalid, Phase: sglang.PhaseBench, Blames: BlameNo, Advice: []string{adviceRerunBench}, Numbers: map[string]float64{}}
	w := figuresOf(f.Context.Workload)
	for name, n := range w.numbers {
		v.Numbers[name] = n
	}
	quote(&v, f.Last[kindAccessError])
	if v.Line == 0 {
		quote(&v, lastEvent(f))
	}
	switch {
	case w.says(loadWords[0].signs), w.waited():
		v.Cause = benchmark.InvalidClientHung
		v.Text = "the load generator stood still while the server was well; measure again"
	case w.failedShare() > failedLimit:
		v.Cause = benchmark.InvalidFailedRequests
		v.Text = fmt.Sprintf("%.0f of %.0f requests failed; look at the first errors and the server's log, then measure again", w.failed(), w.sent())
	case w.wrongTokens():
		v.Cause = benchmark.InvalidWrongTokens
		v.Text = "answers had another length than asked for, so the throughput is not comparable; set ignore_eos, look at the context length, and measure again"
	case w.says(loadWords[1].signs):
		v.Cause = benchmark.InvalidClientLimited
		v.Text = "the load generator, not the server, was the limit; give it more CPU and measure again"
	case w.says(loadWords[2].signs):
		v.Cause = benchmark.InvalidWrongTokens
		v.Text = "answers had another length than asked for; set ignore_eos and measure again"
	case w.says(loadWords[3].signs):
		v.Cause = benchmark.InvalidFailedRequests
		v.Text = "requests failed; look at the first errors and the server's log, then measure again"
	default:
		return v, false
	}
	return v, true
}

// failedLimit is the share of failed requests beyond which a result is not used: that of package benchmark.
const failedLimit = 0.05

// figures are what a free object says: numbers and words by lower-case key, inner objects flattened.
type figures struct {
	numbers map[string]float64
	words   map[string]string
	flags   map[string]bool
}

func figuresOf(v any) figures {
	f := figures{map[string]float64{}, map[string]string{}, map[string]bool{}}
	f.take("", v)
	return f
}

func (f figures) take(key string, v any) {
	switch v := v.(type) {
	case float64:
		f.numbers[key] = v
	case string:
		f.words[key] = strings.ToLower(v)
	case bool:
		f.flags[key] = v
	case map[string]any:
		for name, inner := range v {
			f.take(strings.ToLower(name), inner)
		}
	}
}

// says reports whether a word of the object, or a key that is true or above 0, carries one of the signs.
func (f figures) says(signs []string) bool {
	has := func(text string) bool {
		return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) })
	}
	for key, word := range f.words {
		if has(word) || has(key) && truth(word) {
			return true
		}
	}
	for key, flag := range f.flags {
		if flag && has(key) {
			return true
		}
	}
	for key, n := range f.numbers {
		if n > 0 && has(key) && !strings.Contains(key, "_s") {
			return true
		}
	}
	return false
}

// pick is the first number whose key has one of the words and none of the others.
func (f figures) pick(words, not []string) (float64, bool) {
	for _, word := range words {
		for _, key := range sortedKeys(f.numbers) {
			if strings.Contains(key, word) && !slices.ContainsFunc(not, func(n string) bool { return strings.Contains(key, n) }) {
				return f.numbers[key], true
			}
		}
	}
	return 0, false
}

func (f figures) failed() float64 {
	n, ok := f.pick([]string{"fail", "error", "aborted"}, []string{"rate", "share", "token", "ratio", "limit", "max"})
	if ok {
		return n
	}
	done, known := f.pick([]string{"successful", "success", "ok"}, []string{"token", "rate", "tok_s"})
	if sent := f.sent(); known && sent > done {
		return sent - done
	}
	return 0
}

// waited reports whether the client had heard nothing for long while answers were missing.
func (f figures) waited() bool {
	const long = 60
	idle, ok := f.pick([]string{"silent_s", "idle_s", "stalled_s", "hung_s", "_ago", "since_last", "last_response"}, []string{"server"})
	done, known := f.pick([]string{"completed", "finished", "done", "success"}, []string{"token", "rate", "_s"})
	return ok && idle >= long && (!known || done < f.sent())
}

func (f figures) sent() float64 {
	n, ok := f.pick([]string{"sent", "total", "num_prompts", "requested", "planned", "expected_requests", "requests"}, []string{"token", "fail", "error", "rate", "per_s", "complete", "success", "ok"})
	if ok && n > 0 {
		return n
	}
	done, _ := f.pick([]string{"completed", "successful", "success"}, []string{"token", "rate"})
	lost, _ := f.pick([]string{"fail", "error"}, []string{"rate", "share", "token", "ratio"})
	return done + lost
}

func (f figures) failedShare() float64 {
	if share, ok := f.pick([]string{"failed_share", "fail_rate", "failure_rate", "error_rate", "failed_ratio"}, nil); ok {
		return share
	}
	sent := f.sent()
	if sent <= 0 {
		return 0
	}
	return f.failed() / sent
}

// wrongTokens reports whether far fewer (or more) tokens came than were asked for.
func (f figures) wrongTokens() bool {
	const tolerance = 0.05
	if wrong, ok := f.pick([]string{"wrong"}, nil); ok && f.sent() > 0 {
		return wrong/f.sent() > failedLimit
	}
	ask := []string{"expected", "asked", "requested", "target", "want", "max_new", "planned"}
	want, ok := 0.0, false
	for _, key := range sortedKeys(f.numbers) {
		if isLength(key) && (strings.Contains(key, "out") || strings.Contains(key, "gen") || strings.Contains(key, "compl") || !strings.Contains(key, "in")) &&
			slices.ContainsFunc(ask, func(a string) bool { return strings.Contains(key, a) }) {
			want, ok = f.numbers[key], true
			break
		}
	}
	if !ok || want <= 0 {
		return false
	}
	for _, key := range sortedKeys(f.numbers) {
		if !isLength(key) || strings.Contains(key, "input") || strings.Contains(key, "prompt") || strings.Contains(key, "tok_s") || strings.Contains(key, "per_s") ||
			slices.ContainsFunc(ask, func(a string) bool { return strings.Contains(key, a) }) {
			continue
		}
		got := f.numbers[key]
		return got < want*(1-tolerance) || got > want*(1+tolerance)
	}
	return false
}

// isLength reports whether a key names a number of tokens.
func isLength(key string) bool { return strings.Contains(key, "tok") || strings.Contains(key, "_len") }

func sortedKeys(m map[string]float64) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
