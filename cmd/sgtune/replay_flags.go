package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sgtune/benchmark"
	"sgtune/tuner"
)

// replayOptions are the flags of sgtune replay as they were given.
type replayOptions struct {
	url, endpoint, model, apiKeyEnv, cacert string
	headers                                 []string
	insecure                                bool

	workload, format, timeUnit, salt string
	blockTokens, outputTokens        int
	stopAtEOS                        bool
	set                              generatedSet
	seed                             uint64

	concurrency, rate, arrivals         string
	burstiness, speed                   float64
	asRecorded, spread                  bool
	duration, window, ramp, timeout     time.Duration
	requests, warmup, retries, inFlight int
	target, slo                         string

	flush, json, dryRun bool
	out, csv            string

	secrets []string // of the command line and the environment, once read: they are never shown
}

// generatedSet are the flags of the generated workloads, by SGLang's own names and defaults
// (sglang.bench_serving).
type generatedSet struct {
	randomInput, randomOutput                                  int
	randomRatio                                                float64
	groups, perGroup, systemPrompt, question, gspOutput, turns int
	gspRatio, zipfAlpha                                        float64
	distribution                                               string
	ordered                                                    bool
}

func (o *replayOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.url, "url", "", "the server: http://HOST:PORT, https://HOST[:PORT] or unix:///PATH/OF.sock")
	f.StringVar(&o.endpoint, "endpoint", "auto", "auto, generate (SGLang's own), completions or chat")
	f.StringVar(&o.model, "model", "", "model name for /v1/... (default: what the server serves)")
	f.StringVar(&o.apiKeyEnv, "api-key-env", "", "environment variable that holds the api key (default SGTUNE_API_KEY, else OPENAI_API_KEY)")
	f.StringArrayVar(&o.headers, "header", nil, "header NAME=VALUE of every request; may be given several times")
	f.StringVar(&o.cacert, "cacert", "", "PEM file of certificates to trust for https")
	f.BoolVar(&o.insecure, "insecure", false, "take any certificate")

	f.StringVar(&o.workload, "workload", "", "a workload file, or a generated set: "+strings.Join(benchmark.GeneratedNames(), ", "))
	f.StringVar(&o.format, "format", "auto", "format of the file")
	f.StringVar(&o.timeUnit, "time-unit", "", "unit of the file's times, s or ms (default: guessed and shown)")
	f.IntVar(&o.blockTokens, "block-tokens", 0, "tokens of one hash id (default: guessed and shown)")
	f.IntVar(&o.outputTokens, "output-tokens", 0, "ask for so many tokens in every request, whatever the workload says")
	f.BoolVar(&o.stopAtEOS, "stop-at-eos", false, "let the model end its answers itself")
	f.StringVar(&o.salt, "salt", "", "what makes this run's prompts its own; the same salt gives the same prompts (default: a new one for lengths, none for texts)")
	f.Uint64Var(&o.seed, "seed", 1, "of generated sets and arrivals")
	o.set.register(f)

	f.StringVar(&o.concurrency, "concurrency", "", "closed loop: so many clients; N,N,... is one level after the other (default 32)")
	f.StringVar(&o.rate, "rate", "", "open loop: so many requests a second; R,R,... is one level after the other")
	f.StringVar(&o.arrivals, "arrivals", "", "with --rate: poisson, gamma or constant (default poisson)")
	f.Float64Var(&o.burstiness, "burstiness", 1, "with --rate: shape of gamma arrivals, 1 is Poisson, less is burstier")
	f.BoolVar(&o.asRecorded, "as-recorded", false, "open loop: at the times of the file")
	f.Float64Var(&o.speed, "speed", 1, "with --as-recorded: 2 is twice as fast")
	f.BoolVar(&o.spread, "spread", false, "with --as-recorded: spread equal times evenly to the next one")
	f.IntVar(&o.inFlight, "max-in-flight", 0, "open loop: most requests at once; what waits for it counts as late (default: no limit)")
	f.DurationVar(&o.duration, "duration", 0, "length of the measured part of a level")
	f.IntVar(&o.requests, "requests", 0, "send exactly so many requests and measure all of them")
	f.IntVar(&o.warmup, "warmup", -1, "requests sent before the measured part, with texts of their own; 0 is none (default: 8, at most one a client and a tenth of --requests)")
	f.Lookup("warmup").DefValue = "0" // its text says what happens
	f.DurationVar(&o.window, "window", 0, "length of one window of throughput (default 1s to 10s)")
	f.StringVar(&o.target, "target", "", "end a level early once the 95% interval of its throughput is within this, like 3%")
	f.DurationVar(&o.ramp, "ramp", 0, "closed loop: start the clients evenly over this time")
	f.DurationVar(&o.timeout, "timeout", 0, "longest time for one request (default: none)")
	f.IntVar(&o.retries, "retries", 0, "tries after a failed one, counted apart")
	f.StringVar(&o.slo, "slo", "", "what a request must meet to count as goodput: ttft=2s,tpot=50ms,e2e=30s")

	f.BoolVar(&o.flush, "flush", false, "empty the server's cache before each level (POST /flush_cache)")
	f.StringVar(&o.out, "out", "", "write the report to this JSON file (docs/report.md)")
	f.StringVar(&o.csv, "csv", "", "write each finished request to this CSV file, while it runs")
	f.BoolVar(&o.json, "json", false, "print the report (or with --dry-run the summary) as JSON")
	f.BoolVar(&o.dryRun, "dry-run", false, "read the workload, print what was understood, send nothing")
}

func (g *generatedSet) register(f *pflag.FlagSet) {
	f.IntVar(&g.randomInput, "random-input-len", 1024, "random sets: longest prompt")
	f.IntVar(&g.randomOutput, "random-output-len", 1024, "random sets: longest answer")
	f.Float64Var(&g.randomRatio, "random-range-ratio", 0, "random sets: shortest length over the longest; 1 makes all equal")
	f.IntVar(&g.groups, "gsp-num-groups", 64, "generated-shared-prefix and sessions: groups that share a system prompt")
	f.IntVar(&g.perGroup, "gsp-prompts-per-group", 16, "... prompts of each group")
	f.IntVar(&g.systemPrompt, "gsp-system-prompt-len", 2048, "... tokens of a system prompt")
	f.IntVar(&g.question, "gsp-question-len", 128, "... tokens of a question")
	f.IntVar(&g.gspOutput, "gsp-output-len", 256, "... tokens of an answer")
	f.Float64Var(&g.gspRatio, "gsp-range-ratio", 1, "... shortest length over the longest; 1 makes all equal")
	f.IntVar(&g.turns, "gsp-num-turns", 1, "... questions of one conversation, each with the server's real answers before it")
	f.BoolVar(&g.ordered, "gsp-ordered", false, "... one group after the other, not shuffled")
	f.StringVar(&g.distribution, "gsp-group-distribution", "uniform", "... uniform, or zipf: few groups get most prompts")
	f.Float64Var(&g.zipfAlpha, "gsp-zipf-alpha", 1, "... exponent of zipf")
}

// mistakes collects what is wrong with a command line, one line each.
type mistakes struct{ found tuner.Problems }

func (m *mistakes) add(format string, args ...any) {
	m.found = append(m.found, tuner.Mistake{File: "sgtune replay", Text: fmt.Sprintf(format, args...)})
}

func (m *mistakes) err() error {
	if len(m.found) == 0 {
		return nil
	}
	return m.found
}

// check finds what contradicts itself or makes no sense in the flags, whatever the workload.
func (o *replayOptions) check(given func(name string) bool) error {
	var m mistakes
	switch {
	case o.workload == "":
		m.add("--workload is missing; name a workload file or one of %s", strings.Join(benchmark.GeneratedNames(), ", "))
	case o.url == "" && !o.dryRun:
		m.add("--url is missing; give the server's address, like http://127.0.0.1:30000, or --dry-run")
	}
	o.checkLoad(&m, given)
	o.checkEnd(&m, given)
	for _, flag := range []struct {
		name   string
		value  int
		lowest int
	}{
		{"block-tokens", o.blockTokens, 1},
		{"output-tokens", o.outputTokens, 1},
		{"requests", o.requests, 1},
		{"warmup", o.warmup, 0},
		{"retries", o.retries, 0},
		{"max-in-flight", o.inFlight, 1},
	} {
		if given(flag.name) && flag.value < flag.lowest {
			m.add("--%s %d: must be at least %d", flag.name, flag.value, flag.lowest)
		}
	}
	if o.timeUnit != "" && o.timeUnit != "s" && o.timeUnit != "ms" {
		m.add("--time-unit %.20q is no unit of a workload; it is s or ms", o.timeUnit)
	}
	if !slices.Contains(endpointNames, o.endpoint) {
		m.add("--endpoint %.20q is unknown; it is one of %s", o.endpoint, strings.Join(endpointNames, ", "))
	}
	if given("speed") && !(o.speed > 0 && o.speed <= 1e6) {
		m.add("--speed %g: must be above 0, like 2 for twice as fast", o.speed)
	}
	return m.err()
}

// checkLoad finds loads that exclude each other, and what belongs to another load.
func (o *replayOptions) checkLoad(m *mistakes, given func(string) bool) {
	loads := slices.DeleteFunc([]string{"concurrency", "rate", "as-recorded"}, func(name string) bool { return !given(name) })
	if len(loads) > 1 {
		m.add("--%s: only one of them; choose a closed loop (--concurrency), a rate (--rate) or the file's own times (--as-recorded)", strings.Join(loads, " and --"))
	}
	needs := func(load string, names ...string) {
		for _, name := range names {
			if given(name) && !given(load) {
				m.add("--%s needs --%s; give that too or leave it out", name, load)
			}
		}
	}
	needs("rate", "arrivals", "burstiness")
	needs("as-recorded", "speed", "spread")
	if given("ramp") && (given("rate") || given("as-recorded")) {
		m.add("--ramp belongs to --concurrency; an open loop has no clients that could start one after the other")
	}
	if given("max-in-flight") && !given("rate") && !given("as-recorded") {
		m.add("--max-in-flight belongs to --rate and --as-recorded; a closed loop has --concurrency requests at once")
	}
	switch {
	case !given("arrivals"):
	case !slices.Contains([]string{"poisson", "gamma", "constant"}, o.arrivals):
		m.add("--arrivals %.20q is unknown; it is poisson, gamma or constant", o.arrivals)
	case given("burstiness") && o.arrivals != "gamma":
		m.add("--burstiness belongs to gamma arrivals, not to %s; leave one of them out", o.arrivals)
	}
	if given("burstiness") && !(o.burstiness > 0 && o.burstiness <= 1e6) {
		m.add("--burstiness %g: must be above 0; 1 is Poisson, less is burstier", o.burstiness)
	}
}

// checkEnd finds what contradicts itself in how a level ends.
func (o *replayOptions) checkEnd(m *mistakes, given func(string) bool) {
	if given("target") && given("requests") {
		m.add("--target and --requests exclude each other: a number of requests is sent whole; leave one out, or use --duration")
	}
	for _, flag := range []struct {
		name  string
		value time.Duration
	}{{"duration", o.duration}, {"window", o.window}, {"timeout", o.timeout}, {"ramp", o.ramp}} {
		if given(flag.name) && flag.value <= 0 {
			m.add("--%s %s: must be above 0, like 60s", flag.name, flag.value)
		}
	}
	if o.window > 0 && o.duration > 0 && o.window > o.duration {
		m.add("--window %s is longer than --duration %s; a level has at least one window", o.window, o.duration)
	}
	if o.dryRun {
		for _, name := range []string{"out", "csv"} {
			if given(name) {
				m.add("--%s needs a run; --dry-run sends nothing, its summary is printed (--json)", name)
			}
		}
	}
}

// endpointNames are the values of --endpoint.
var endpointNames = []string{"auto", "generate", "completions", "chat"}

// parseList reads numbers like 8,16,32.
func parseList(flag, text string, parse func(string) (float64, error)) ([]float64, error) {
	const most = 100
	var out []float64
	for word := range strings.SplitSeq(text, ",") {
		v, err := parse(strings.TrimSpace(word))
		if err != nil {
			return nil, usagef("--%s %.40q: %w", flag, text, err)
		}
		out = append(out, v)
	}
	if len(out) > most {
		return nil, usagef("--%s has more than %d values", flag, most)
	}
	return out, nil
}

func parseClients(word string) (float64, error) {
	const most = 100_000
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%.20q is not a number of clients from 1 to %d; write 32, or 8,16,32 for several levels", word, most)
	}
	return float64(n), nil
}

func parseRate(word string) (float64, error) {
	const most = 1e6
	r, err := strconv.ParseFloat(word, 64)
	if err != nil || !(r > 0 && r <= most) {
		return 0, fmt.Errorf("%.20q is not a rate in requests a second, above 0 and at most a million; for as many as the server takes use --concurrency", word)
	}
	return r, nil
}

// parseTarget reads 3% or 0.03.
func parseTarget(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, usagef("--target %.20q: write it as 3%%, between 0%% and 100%%", text)
	}
	return v, nil
}

// parseSLO reads ttft=2s,tpot=50ms,e2e=30s.
func parseSLO(text string) (benchmark.SLO, error) {
	var slo benchmark.SLO
	if text == "" {
		return slo, nil
	}
	limits := map[string]*time.Duration{"ttft": &slo.TTFT, "tpot": &slo.TPOT, "e2e": &slo.E2E}
	for word := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
		limit, known := limits[name]
		d, err := time.ParseDuration(value)
		switch {
		case !known:
			return slo, usagef("--slo %.40q: %.20q is none of ttft, tpot, e2e; write it as ttft=2s,tpot=50ms", text, name)
		case err != nil || d <= 0:
			return slo, usagef("--slo %.40q: %s needs a time above 0 with its unit; write it as %s=50ms", text, name, name)
		case *limit > 0:
			return slo, usagef("--slo %.40q: %s is given twice; keep one", text, name)
		}
		*limit = d
	}
	return slo, nil
}

// loads are the load levels asked for, one after the other.
func (o *replayOptions) loads() ([]replayLoad, error) {
	var out []replayLoad
	switch {
	case o.asRecorded:
		return []replayLoad{{arrivals: &benchmark.Arrivals{Process: benchmark.ArrivalsRecorded, Speed: o.speed, Spread: o.spread, Seed: o.seed, MaxInFlight: o.inFlight}}}, nil
	case o.rate != "":
		rates, err := parseList("rate", o.rate, parseRate)
		for _, r := range rates {
			out = append(out, replayLoad{arrivals: &benchmark.Arrivals{
				Process: o.process(), Rate: r, Burstiness: o.burstiness, Seed: o.seed, MaxInFlight: o.inFlight,
			}})
		}
		return out, err
	}
	text := o.concurrency
	if text == "" {
		text = strconv.Itoa(defaultClients)
	}
	clients, err := parseList("concurrency", text, parseClients)
	for _, n := range clients {
		out = append(out, replayLoad{clients: int(n)})
	}
	return out, err
}

// defaultClients is the closed loop of a command line that names no load.
const defaultClients = 32

func (o *replayOptions) process() string {
	switch {
	case o.arrivals != "":
		return o.arrivals
	case o.burstiness != 1:
		return "gamma"
	}
	return "poisson"
}

// replayLoad is what one level puts on the server: clients of a closed loop, or arrivals.
type replayLoad struct {
	clients  int
	arrivals *benchmark.Arrivals
}

// String says the load as tables and reports name it.
func (l replayLoad) String() string {
	a := l.arrivals
	switch {
	case a == nil:
		return count(l.clients, "client")
	case a.Process == benchmark.ArrivalsRecorded && a.Speed != 1:
		return fmt.Sprintf("as recorded, %sx as fast", plainNumber(a.Speed))
	case a.Process == benchmark.ArrivalsRecorded:
		return "as recorded"
	case a.Process == "gamma":
		return fmt.Sprintf("%s requests/s, gamma, burstiness %s", plainNumber(a.Rate), plainNumber(a.Burstiness))
	}
	return fmt.Sprintf("%s requests/s, %s", plainNumber(a.Rate), map[string]string{"poisson": "Poisson", "constant": "evenly spaced"}[a.Process])
}

// plainNumber spells a number as short as it is exact to 4 figures.
func plainNumber(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
