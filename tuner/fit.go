package tuner

import (
	"fmt"
	"slices"
	"strings"

	"sgtune/sglang"
)

// RuleVersion is the rule that keeps out values the installed SGLang does not take.
const RuleVersion = "version"

// Installed is what is known of the SGLang that a study's command starts.
type Installed struct {
	Version sglang.Version // zero = not known; the newest known release stands for it
	Text    string         // how it was found, for a person: "0.5.9, as it says itself"
	Flags   sglang.Flags   // its options: of its own --help, else of the release; nil = not known
}

// Fit fits a study to the installed SGLang: values that it does not take leave the space (Excluded),
// bf16 is not passed to versions that lack it, and renamed flags will be passed by their present
// name (Server.Version). What was done is added to Notes. problems says what cannot be helped, one
// sentence each: a flag that the version lacks, a knob without a value left.
func (s *Study) Fit(in Installed) (problems []string) {
	s.labelCheckpoint(in.Version)
	if in.Version == (sglang.Version{}) && in.Flags == nil {
		return nil // nothing is known: the study is run as it is written
	}
	s.Server.Version = in.Version
	flags := in.Flags
	if flags == nil {
		flags, _ = sglang.FlagsOf(in.Version)
	}
	f := fitting{study: s, flags: flags, name: "the installed SGLang"}
	if in.Version != (sglang.Version{}) {
		f.name = "SGLang " + in.Version.String()
	}
	f.lossless()
	f.fixed("server.flags", s.Server.Flags)
	f.fixed("server.baseline", s.Baseline)
	for i := range s.Space {
		s.Space[i] = f.dimension(s.Space[i])
	}
	return f.problems
}

// fitting is one Fit in the making.
type fitting struct {
	study    *Study
	flags    sglang.Flags
	name     string // "SGLang 0.5.9"
	problems []string
}

// lossless settles the KV cache type that is passed where the study leaves it open: up to 0.5.3
// there is no bf16, and auto is the model's own type there (a checkpoint's FP8 is followed from
// 0.5.6 on).
func (f *fitting) lossless() {
	s := f.study
	if s.Passed[kvDtype] != "bf16" || !f.flags.Has(kvDtype) || f.flags.Accepts(kvDtype, "bf16") {
		return
	}
	delete(s.Passed, kvDtype)
	s.note("%s has no %s bf16; its auto is the model's own type, so nothing is passed.", f.name, kvDtype)
}

// fixed looks at flags that every launch has.
func (f *fitting) fixed(where string, c sglang.Config) {
	mapped, notes, problems := sglang.Translate(ours(c), c, f.flags)
	for _, n := range notes {
		f.study.note("%s: %s", where, n)
	}
	for _, p := range problems {
		f.problems = append(f.problems, fmt.Sprintf("%s: %s has no flag --%s%s", where, f.name, p.Name, instead(p)))
	}
	for _, name := range mapped.Names() {
		if k, ok := sglang.Lookup(name); ok && k.Dead {
			f.study.note("%s: %s does nothing: no release of SGLang reads it; it can go.", where, name)
		}
		if !f.takes(name, mapped[name]) {
			f.problems = append(f.problems, fmt.Sprintf("%s: %s does not take --%s %s%s", where, f.name, name, sglang.FormatValue(mapped[name]), f.choices(name)))
		}
	}
}

// dimension looks at a searched knob and leaves out the values that the version does not take.
func (f *fitting) dimension(d Dimension) Dimension {
	var kept []any
	var notes []string
	for _, v := range d.Values {
		mapped, said, problems := sglang.Translate(ours(sglang.Config{d.Name: v}), f.study.Server.Flags, f.flags)
		if len(problems) > 0 {
			f.problems = append(f.problems, fmt.Sprintf("space: %s has no flag --%s%s", f.name, d.Name, instead(problems[0])))
			return d
		}
		if len(said) > 0 && !slices.Contains(notes, said[0]) {
			notes = append(notes, said[0])
		}
		fits := true
		for name, value := range mapped {
			fits = fits && f.takes(name, value)
		}
		if fits {
			kept = append(kept, v)
			continue
		}
		f.study.Excluded = append(f.study.Excluded, Exclusion{
			Knob: d.Name, Value: v, Rule: RuleVersion,
			Text: fmt.Sprintf("rule %s: %s %s is left out of the space: %s does not take it%s", RuleVersion, d.Name, sglang.FormatValue(v), f.name, f.choices(d.Name)),
		})
	}
	for _, n := range notes {
		f.study.note("space: %s", n)
	}
	if len(kept) == 0 {
		f.problems = append(f.problems, fmt.Sprintf("space: %s takes none of the values of %s%s; remove the knob", f.name, d.Name, f.choices(d.Name)))
		return d
	}
	d.Values = kept
	return d
}

// takes reports whether a flag takes a value; lists and environment variables are not looked at.
func (f *fitting) takes(name string, value any) bool {
	if _, list := value.([]any); list || strings.HasPrefix(name, sglang.EnvPrefix) || !f.flags.Has(name) || !f.flags[name].TakesValue {
		return true
	}
	return f.flags.Accepts(name, sglang.FormatValue(value))
}

func (f *fitting) choices(name string) string {
	if c := f.flags[f.flags.Current(name)].Choices; len(c) > 0 {
		return "; it takes " + strings.Join(c, ", ")
	}
	return ""
}

// instead is what a missing flag's sentence says to do.
func instead(e *sglang.FlagError) string {
	if _, todo, ok := strings.Cut(e.Text, "; "); ok {
		return "; " + todo
	}
	return ""
}

// ours leaves out what is not SGLang's: options of the simulated server, and a hierarchical cache
// that is off.
func ours(c sglang.Config) sglang.Config {
	out := sglang.Config{}
	for name, v := range c {
		if size, ok := c.Float(hicacheSize); strings.HasPrefix(name, "sim-") || name == hicacheSize && ok && size <= 0 {
			continue
		}
		out[name] = v
	}
	return out
}

// Misfits is what Fit would report, without changing the study.
func (s *Study) Misfits(in Installed) []string {
	c := *s
	c.Notes, c.Excluded, c.Space = slices.Clone(s.Notes), slices.Clone(s.Excluded), slices.Clone(s.Space)
	c.Passed = s.Passed.Clone()
	return c.Fit(in)
}

// NeedsVersion reports whether it matters which release is installed: a flag of the study is not in
// every one under the same name.
func (s *Study) NeedsVersion() bool {
	names := slices.Concat(s.Server.Flags.Names(), s.Baseline.Names(), s.Passed.Names(), s.Space.Names())
	return slices.ContainsFunc(names, func(name string) bool {
		if strings.HasPrefix(name, sglang.EnvPrefix) || strings.HasPrefix(name, "sim-") {
			return false
		}
		return slices.ContainsFunc(sglang.Releases(), func(v sglang.Version) bool {
			flags, _ := sglang.FlagsOf(v)
			return !flags.Has(name)
		})
	})
}
