package sglang

import (
	"fmt"
	"slices"
)

// Conflict is a combination of settings that a version of SGLang does not take as it is.
type Conflict struct {
	Rule    string   // the rule in words, the same for all configurations that break it
	Flags   []string // names of the flags involved, without dashes
	Fatal   bool     // the server refuses to start; else it starts with Becomes instead
	Becomes Config   // what it runs with instead, where it is not fatal
	Text    string   // one sentence for a person: what does not go together, and why
}

// combination is one row of the table: a check that SGLang makes between flags.
type combination struct {
	flags        []string
	rule         string  // in words, for docs/knobs.md
	since, until Version // first known release with the check, first one without; zero = no limit
	fatal        bool
	// check says what does not go together in s ("" = all well), and what the server makes of it.
	check func(s settings) (text string, becomes Config)
}

// Rejected lists what a version's server would not take of a complete configuration (fixed flags
// with knobs laid over them), fatal conflicts first. Flags may have their names of any version. It
// knows the checks between flags of srt/server_args.py and srt/arg_groups that need neither the
// model nor the GPU; an empty answer is no promise. An unknown version counts as the newest.
func Rejected(cfg Config, v Version) []Conflict {
	flags, _ := FlagsOf(v)
	s := settings{cfg: Config{}, flags: flags, v: v}
	newest, _ := FlagsOf(Version{})
	for name, value := range cfg {
		s.cfg[newest.Current(name)] = value
	}
	if v == (Version{}) {
		s.v = known().versions[len(known().versions)-1]
	}
	var out []Conflict
	for _, c := range combinations {
		if c.since != (Version{}) && s.v.Compare(c.since) < 0 || c.until != (Version{}) && s.v.Compare(c.until) >= 0 {
			continue
		}
		if text, becomes := c.check(s); text != "" {
			out = append(out, Conflict{Rule: c.rule, Flags: c.flags, Fatal: c.fatal, Becomes: becomes, Text: text})
		}
	}
	slices.SortStableFunc(out, func(a, b Conflict) int {
		switch {
		case a.Fatal == b.Fatal:
			return 0
		case a.Fatal:
			return -1
		}
		return 1
	})
	return out
}

// settings is one configuration by the newest release's names, in front of one version.
type settings struct {
	cfg   Config
	flags Flags // of the version
	v     Version
}

// on reports whether a bare flag is given.
func (s settings) on(name string) bool {
	v, _ := s.cfg[name].(bool)
	return v
}

// number is a numeric setting, else a whole default; ok is false for one that the server chooses.
func (s settings) number(name string, otherwise int) int {
	if v, ok := s.cfg.Float(name); ok {
		return int(v)
	}
	return otherwise
}

// given is a setting as text, "" when it is not in the configuration.
func (s settings) given(name string) string { return FormatValue(s.cfg[name]) }

// orDefault is a setting as text, else what the version's parser gives.
func (s settings) orDefault(name string) string {
	if v, ok := s.cfg[name]; ok {
		return FormatValue(v)
	}
	return FormatValue(s.flags[s.flags.Current(name)].Default)
}

// hicache reports whether the hierarchical cache is on, by itself or by a size above 0 (which puts
// the flag into every command line, see Config).
func (s settings) hicache() bool {
	if size, ok := s.cfg.Float("hicache-size"); ok {
		return size > 0
	}
	return s.on("enable-hierarchical-cache")
}

// attentionDP is the number of groups the attention is split into: --attn-dp-size from 0.5.23 on,
// --dp-size with --enable-dp-attention in every version.
func (s settings) attentionDP() int {
	if n := s.number("attn-dp-size", 1); n > 1 {
		return n
	}
	if s.on("enable-dp-attention") {
		return s.number("dp-size", 1)
	}
	return 1
}

// backends are the attention backends that are given, for all, for decode and for prefill.
func (s settings) backends(decodeOnly bool) []string {
	names := []string{"attention-backend", "decode-attention-backend"}
	if !decodeOnly {
		names = append(names, "prefill-attention-backend")
	}
	var out []string
	for _, name := range names {
		if b := s.given(name); b != "" {
			out = append(out, b)
		}
	}
	return out
}

// forcedPage is the page size that a given attention backend makes of page, and the backend.
func (s settings) forcedPage(page int) (int, string) {
	all, decode := s.backends(false), s.backends(true)
	if len(all) == 0 {
		return page, ""
	}
	for _, p := range forcedPages {
		if p.since != (Version{}) && s.v.Compare(p.since) < 0 || p.until != (Version{}) && s.v.Compare(p.until) >= 0 {
			continue
		}
		given := all
		if p.decodeOnly {
			given = decode
		}
		if slices.Contains(given, p.backend) && !slices.Contains(p.allowed, page) {
			return p.allowed[len(p.allowed)-1], p.backend
		}
	}
	return page, ""
}

// page is the page size in force, as far as the flags tell.
func (s settings) page() int {
	page, _ := s.forcedPage(s.number("page-size", 1))
	return max(1, page)
}

// forcedPage is an attention backend that takes only some page sizes and sets the last of them
// where another is asked for (arg_groups/overrides.py, before 0.5.15 server_args.py). FA4 forces
// 128 too, but only for models without MLA on some GPUs.
type forcedPage struct {
	backend      string
	allowed      []int // the last one is what it sets
	since, until Version
	decodeOnly   bool // not as a prefill backend
}

var forcedPages = []forcedPage{
	{backend: "flashmla", allowed: []int{64}, decodeOnly: true},
	{backend: "cutlass_mla", allowed: []int{128}, until: v0520, decodeOnly: true},
	{backend: "trtllm_mla", allowed: []int{32, 64}, since: v0502, decodeOnly: true},
	{backend: "trtllm_mha", allowed: []int{16, 32, 64}, since: v0502, until: v0518},
	{backend: "trtllm_mha", allowed: []int{16, 32, 128, 64}, since: v0518},
	{backend: "tokenspeed_mla", allowed: []int{32, 64}, since: v0512, until: v0523},
	{backend: "cutedsl_mla", allowed: []int{32, 64}, since: v0515},
	{backend: "hpc_ops", allowed: []int{64}, since: v0518},
}

// refused is a check that only needs a condition.
func refused(text string, when func(s settings) bool) func(settings) (string, Config) {
	return func(s settings) (string, Config) {
		if when(s) {
			return text, nil
		}
		return "", nil
	}
}

// divides says that a must be divisible by b; "" when it is.
func divides(what string, a int, by string, b int) string {
	if b <= 1 || a%b == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d is not divisible by %s %d, and the server refuses to start", what, a, by, b)
}

// CombinationRule is one row of the table of combinations, for docs/knobs.md.
type CombinationRule struct {
	Flags        []string
	Rule         string  // in words
	Since, Until Version // first known release with the check, first one without; zero = no limit
	Fatal        bool    // refused; else rewritten
}

// CombinationRules returns what Rejected knows, in the order of the table.
func CombinationRules() []CombinationRule {
	out := make([]CombinationRule, 0, len(combinations))
	for _, c := range combinations {
		out = append(out, CombinationRule{Flags: c.flags, Rule: c.rule, Since: c.since, Until: c.until, Fatal: c.fatal})
	}
	return out
}
