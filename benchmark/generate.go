package benchmark

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// GenerateOptions says which set of requests to make up. Names and meanings are those of SGLang's own
// benchmark (sglang.bench_serving), whose flags the fields are called after; DefaultGenerateOptions has its
// defaults.
type GenerateOptions struct {
	Name     string // a name of GeneratedNames
	Requests int    // rows of random and random-ids (--num-prompts), 0 = 1000; the other sets have groups x prompts
	Seed     uint64 // the same seed gives the same set

	RandomInputLen   int     // longest prompt in tokens
	RandomOutputLen  int     // longest answer in tokens
	RandomRangeRatio float64 // shortest over longest: lengths are drawn from max(1, int(L*ratio)) to L, both included

	GSPNumGroups         int     // groups; all prompts of one begin with the same system prompt
	GSPPromptsPerGroup   int     // prompts (conversations) a group
	GSPSystemPromptLen   int     // longest system prompt in tokens, 0 = none
	GSPQuestionLen       int     // longest question in tokens
	GSPOutputLen         int     // longest answer in tokens
	GSPRangeRatio        float64 // as RandomRangeRatio, for the three lengths above
	GSPNumTurns          int     // questions of a conversation, each sent with the server's answers so far
	GSPOrdered           bool    // one group after the other, not shuffled
	GSPGroupDistribution string  // "uniform", or "zipf": each prompt's group is drawn, the first ones most often
	GSPZipfAlpha         float64 // exponent of zipf, above 0
}

// Names of the generated sets.
const (
	setRandom       = "random"
	setRandomIDs    = "random-ids"
	setSharedPrefix = "generated-shared-prefix"
	setSessions     = "sessions"
)

const (
	defaultRequests = 1000
	defaultTurns    = 4 // of a session
	mostRows        = 10_000_000
)

// DefaultGenerateOptions are SGLang's defaults for a set.
func DefaultGenerateOptions(name string) GenerateOptions {
	return GenerateOptions{
		Name:                 name,
		Requests:             defaultRequests,
		RandomInputLen:       1024,
		RandomOutputLen:      1024,
		GSPNumGroups:         64,
		GSPPromptsPerGroup:   16,
		GSPSystemPromptLen:   2048,
		GSPQuestionLen:       128,
		GSPOutputLen:         256,
		GSPRangeRatio:        1,
		GSPNumTurns:          1,
		GSPGroupDistribution: "uniform",
		GSPZipfAlpha:         1,
	}
}

// GeneratedNames are the sets Generate knows.
func GeneratedNames() []string {
	return []string{setRandom, setRandomIDs, setSharedPrefix, setSessions}
}

// otherSets are the sets of SGLang's benchmark that need something from outside, with what to do instead.
var otherSets = map[string]string{
	"sharegpt":      "it is a download; name the ShareGPT JSON file itself",
	"custom":        "it is read from a file; name the JSON lines file itself",
	"openai":        "it is read from a file; name the JSON lines file of messages itself",
	"mooncake":      "it is a download; name the trace's JSON lines file itself",
	"agentic-trace": "it is read from a file; name the trace's JSON file itself",
	"longbench_v2":  "it is a download; for long prompts use random with --random-input-len, or name a file of prompts",
	"speed-bench":   "it is a download; use random or generated-shared-prefix, or name a file of prompts",
	"mmmu":          "it needs images, which sgtune does not send; use random, or name a file of prompts",
	"image":         "it needs images, which sgtune does not send; use random, or name a file of prompts",
}

// IsGenerated reports whether name is a set rather than a file: one that Generate makes, or one of SGLang's
// that it refuses with the reason.
func IsGenerated(name string) bool {
	_, other := otherSets[name]
	return other || slices.Contains(GeneratedNames(), name)
}

// Generate makes up a set of requests. Rows are computed when they are asked for, so a million of them
// costs neither time nor memory. Prompts are made of the palette, like those of any file with lengths:
// SGLang takes the texts of random from a download and those of random-ids from all ids of the
// vocabulary, the special ones too; ours have the same lengths, share nothing that theirs do not share, and need neither.
//
// sessions is ours: generated-shared-prefix with several turns (4 unless GSPNumTurns says more).
func Generate(o GenerateOptions) (*Workload, error) {
	if why, ok := otherSets[o.Name]; ok {
		return nil, fmt.Errorf("the set %s cannot be generated: %s with --workload FILE", o.Name, why)
	}
	if o.Requests == 0 {
		o.Requests = defaultRequests
	}
	switch o.Name {
	case setRandom, setRandomIDs:
		return generateRandom(o)
	case setSessions:
		if o.GSPNumTurns <= 1 {
			o.GSPNumTurns = defaultTurns
		}
		return generateSharedPrefix(o)
	case setSharedPrefix:
		return generateSharedPrefix(o)
	}
	return nil, fmt.Errorf("no generated set is called %.40q; known are %s", o.Name, strings.Join(GeneratedNames(), ", "))
}

func generateRandom(o GenerateOptions) (*Workload, error) {
	err := firstError(
		o.number("number of requests", o.Requests, 1),
		o.number("--random-input-len", o.RandomInputLen, 1),
		o.number("--random-output-len", o.RandomOutputLen, 1),
		o.ratio("--random-range-ratio", o.RandomRangeRatio),
	)
	if err != nil {
		return nil, err
	}
	w := o.workload(randomRows{
		n: o.Requests, seed: o.Seed,
		input:  rangeOf(o.RandomInputLen, o.RandomRangeRatio),
		output: rangeOf(o.RandomOutputLen, o.RandomRangeRatio),
	}, nil, 0)
	if o.Name == setRandom {
		w.Notes = append(w.Notes, "prompts are made of single-token words; SGLang's random cuts texts of ShareGPT, a download, to the same lengths")
	}
	return w, nil
}

func generateSharedPrefix(o GenerateOptions) (*Workload, error) {
	most := mostRows
	if o.GSPNumTurns > 1 {
		most = maxLinks
	}
	err := firstError(
		o.number("--gsp-num-groups", o.GSPNumGroups, 1),
		o.number("--gsp-prompts-per-group", o.GSPPromptsPerGroup, 1),
		o.number("--gsp-system-prompt-len", o.GSPSystemPromptLen, 0),
		o.number("--gsp-question-len", o.GSPQuestionLen, 1),
		o.number("--gsp-output-len", o.GSPOutputLen, 1),
		o.number("--gsp-num-turns", o.GSPNumTurns, 1),
		o.ratio("--gsp-range-ratio", o.GSPRangeRatio),
		o.distribution(),
	)
	if err == nil && float64(o.GSPNumGroups)*float64(o.GSPPromptsPerGroup)*float64(o.GSPNumTurns) > float64(most) {
		err = fmt.Errorf("%s: %d groups x %d prompts x %d turns are more than %d requests; choose smaller ones",
			o.Name, o.GSPNumGroups, o.GSPPromptsPerGroup, o.GSPNumTurns, most)
	}
	if err != nil {
		return nil, err
	}
	rows := newSharedRows(o)
	return o.workload(rows, rows.links(), rows.block), nil
}

// workload is the set of rows that were planned.
func (o GenerateOptions) workload(rows rowStore, links *links, block int) *Workload {
	w := &Workload{Format: o.Name, BlockTokens: block, Dropped: map[string]int{}, rows: rows, links: links}
	w.settle()
	return w
}

func (o GenerateOptions) number(what string, n, least int) error {
	if n < least || n > maxTokens {
		return fmt.Errorf("%s: %s %d: must be from %d to %d", o.Name, what, n, least, maxTokens)
	}
	return nil
}

func (o GenerateOptions) ratio(flag string, r float64) error {
	if !(r >= 0 && r <= 1) {
		return fmt.Errorf("%s: %s %g: must be from 0 (lengths from 1 token up) to 1 (all equal)", o.Name, flag, r)
	}
	return nil
}

func (o GenerateOptions) distribution() error {
	switch o.GSPGroupDistribution {
	case "", "uniform":
		return nil
	case "zipf":
		if !(o.GSPZipfAlpha > 0) || math.IsInf(o.GSPZipfAlpha, 0) {
			return fmt.Errorf("%s: --gsp-zipf-alpha %g: must be above 0, like 1", o.Name, o.GSPZipfAlpha)
		}
		return nil
	}
	return fmt.Errorf("%s: --gsp-group-distribution %.20q is unknown; it is uniform or zipf", o.Name, o.GSPGroupDistribution)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
