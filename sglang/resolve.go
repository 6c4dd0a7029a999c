package sglang

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Trouble is why a name is not one of a server's options.
type Trouble string

// Troubles with a name.
const (
	TroubleUnknown   Trouble = "unknown"   // no release has it
	TroubleAmbiguous Trouble = "ambiguous" // shortened, and fits several
	TroubleGone      Trouble = "gone"      // older releases had it, and nothing took its place as it was
	TroubleLater     Trouble = "later"     // only newer releases have it
)

// FlagError is a name that a version's server would not take.
type FlagError struct {
	Name string // as written, without dashes
	Why  Trouble
	Text string // one sentence for a person: what is wrong and what to do
}

// Error is the sentence.
func (e *FlagError) Error() string { return e.Text }

// Find looks an option up as argparse does: an exact name wins; else a name that is the beginning
// of exactly one option is that option (SGLang's parser allows shortening, so --mem-frac works).
// name is without dashes. The error is a *FlagError: unknown or ambiguous.
//
// Python before 3.12 calls a beginning ambiguous too when it fits two names of one option; here it
// is that option, since a launch that works is what is read.
func (f Flags) Find(name string) (Flag, error) {
	if flag, ok := f[name]; ok {
		return flag, nil
	}
	var fits []string
	options := map[string]bool{}
	for _, full := range f.Names() {
		if name != "" && strings.HasPrefix(full, name) {
			fits = append(fits, full)
			options[f[full].Canonical] = true
		}
	}
	switch {
	case len(options) == 1:
		return f[fits[0]], nil
	case len(options) > 1:
		return Flag{}, &FlagError{Name: name, Why: TroubleAmbiguous, Text: fmt.Sprintf("--%s is ambiguous: it could be %s; write the full name", name, listed(fits, 4))}
	}
	text := fmt.Sprintf("--%s is no flag of SGLang; remove it", name)
	if s := Suggest(name); s != "" {
		text = fmt.Sprintf("--%s is no flag of SGLang; did you mean --%s?", name, s)
	}
	return Flag{}, &FlagError{Name: name, Why: TroubleUnknown, Text: text}
}

// listed joins up to most names as options.
func listed(names []string, most int) string {
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" (and %d more)", len(names)-most)
	}
	return "--" + strings.Join(names, ", --") + more
}

// Resolve finds the option that a word of a launch command names in a version: shortened names are
// completed, aliases become the canonical name, renamed flags get the name this version knows.
// name may have its dashes and may be shortened; an unknown version counts as the newest.
//
// note, one sentence for a person, says what is worth knowing: the flag is deprecated, was renamed,
// or does nothing; "" when nothing is. The error is a *FlagError. What a flag without a namesake is
// replaced by, Translate knows.
func Resolve(name string, v Version) (canonical, note string, err error) {
	name = strings.TrimLeft(name, "-")
	flags, at := FlagsOf(v)
	flag, err := flags.Find(name)
	if err == nil {
		return resolved(flag, flags, v)
	}
	first, _, inSome := firstAndLast(name)
	var trouble *FlagError
	if !inSome || errors.As(err, &trouble) && trouble.Why == TroubleAmbiguous && first.Compare(at) > 0 {
		return "", "", err // a beginning, though a newer release has a flag of just that name
	}
	if now, ok := renamed(name, flags); ok {
		return now, moved(name, now, v), nil
	}
	return "", "", absent(name, v)
}

// resolved says what a found option is called, and what is worth knowing about it.
func resolved(flag Flag, flags Flags, v Version) (canonical, note string, err error) {
	name := flag.Canonical
	if flag.Deprecated {
		if now, ok := renamed(flag.Name, flags); ok {
			return now, fmt.Sprintf("--%s is deprecated in SGLang %s; --%s took its place", flag.Name, shown(v), now), nil
		}
		note = fmt.Sprintf("--%s is deprecated in SGLang %s", flag.Name, shown(v))
		if instead := successorText(flag.Name); instead != "" {
			note += "; use " + instead
		}
	}
	if _, own := flags[name]; !own {
		name = flags.ownName(flag)
	}
	if k, ok := Lookup(name); ok && k.Dead {
		note = fmt.Sprintf("--%s does nothing: no version of SGLang reads it; remove it", name)
	}
	if flag.Form == FormNothing {
		note = fmt.Sprintf("--%s does nothing in SGLang %s but warn, or is refused; remove it", flag.Name, shown(v))
		if instead := successorText(flag.Name); instead != "" {
			note = fmt.Sprintf("--%s does nothing in SGLang %s but warn, or is refused; use %s", flag.Name, shown(v), instead)
		}
	}
	return name, note, nil
}

// ownName is the name of an option in a release that does not have its newest name.
func (f Flags) ownName(flag Flag) string {
	for _, name := range f.Names() {
		if f[name].Canonical == flag.Canonical && !f[name].Deprecated {
			return name
		}
	}
	return flag.Name
}

// moved says that a flag has another name in a version.
func moved(name, now string, v Version) string {
	first, _, _ := firstAndLast(name)
	if gone, ok := goneSince(name); ok && first.Compare(v) <= 0 || v == (Version{}) {
		return fmt.Sprintf("--%s is gone since SGLang %s; --%s took its place", name, gone, now)
	}
	return fmt.Sprintf("--%s came with SGLang %s; in %s it is --%s", name, first, shown(v), now)
}

// absent says why a flag that some release has is not one of this version.
func absent(name string, v Version) error {
	first, last, _ := firstAndLast(name)
	if v != (Version{}) && first.Compare(v) > 0 {
		return &FlagError{Name: name, Why: TroubleLater, Text: fmt.Sprintf("--%s came with SGLang %s; %s does not have it, remove it", name, first, v)}
	}
	text := fmt.Sprintf("--%s is gone since SGLang %s; remove it", name, laterThan(last))
	if instead := successorText(name); instead != "" {
		text = fmt.Sprintf("--%s is gone since SGLang %s; use %s", name, laterThan(last), instead)
	}
	return &FlagError{Name: name, Why: TroubleGone, Text: text}
}

// laterThan is the known release after v.
func laterThan(v Version) Version {
	all := Releases()
	if i := slices.Index(all, v); i >= 0 && i+1 < len(all) {
		return all[i+1]
	}
	return v
}

// shown is a version in a sentence; an unknown one counts as the newest.
func shown(v Version) string {
	if v == (Version{}) {
		all := Releases()
		return all[len(all)-1].String()
	}
	return v.String()
}
