package sglang

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// releaseTable is what the parsers of sixteen SGLang releases declare; flags/README.md says how it
// was made.
//
//go:embed flags/releases.tsv
var releaseTable string

// releases are the tables of all known releases, oldest first.
type releases struct {
	versions  []Version
	flags     []Flags             // of the release at the same place
	canonical map[string]string   // any name of any release to the newest name of the same option
	hidden    map[string]struct{} // names that --help does not show
}

// known parses the embedded table once.
var known = sync.OnceValue(func() *releases {
	r := &releases{canonical: map[string]string{}, hidden: map[string]struct{}{}}
	lines := strings.Split(strings.TrimSpace(releaseTable), "\n")
	place := map[string]int{}
	for _, line := range lines {
		if list, ok := strings.CutPrefix(line, "# releases: "); ok {
			for i, text := range strings.Fields(list) {
				v, err := ParseVersion(text)
				if err != nil {
					continue // the table's own test finds it
				}
				place[text] = i
				r.versions, r.flags = append(r.versions, v), append(r.flags, Flags{})
			}
		}
	}
	for _, line := range lines {
		if cells := strings.Split(line, "\t"); len(cells) == 8 && !strings.HasPrefix(line, "#") {
			r.add(cells, place[cells[1]], place[cells[2]])
		}
	}
	r.settleNames()
	return r
})

// add puts one row of the table into the releases first to last.
func (r *releases) add(cells []string, first, last int) {
	flag := Flag{Name: cells[0], Canonical: cells[0], Form: Form(strings.TrimRight(cells[3], "+*?"))}
	flag.Many = strings.ContainsAny(cells[3], "+*")
	flag.Optional = strings.ContainsAny(cells[3], "*?")
	flag.TakesValue = flag.Form.takesValue()
	if json.Unmarshal([]byte(cells[4]), &flag.Default) != nil {
		flag.Default = nil
	}
	if cells[5] != "-" {
		flag.Choices = strings.Split(cells[5], "|")
	}
	flag.Deprecated = strings.Contains(cells[7], "deprecated")
	names := []string{flag.Name}
	if cells[6] != "-" {
		names = append(names, strings.Split(cells[6], ",")...)
	}
	if strings.Contains(cells[7], "hidden") {
		for _, name := range names {
			r.hidden[name] = struct{}{}
		}
	}
	for i := first; i <= last && i < len(r.flags); i++ {
		for _, name := range names {
			flag.Name = name
			r.flags[i][name] = flag
			if flag.Form == FormSwitch {
				no := flag
				no.Name, no.Negates = "no-"+name, true
				r.flags[i][no.Name] = no
			}
		}
	}
}

// settleNames gives every option its newest name in all releases: attn-cp-size, also where an older
// release lists attention-context-parallel-size first.
func (r *releases) settleNames() {
	for _, flags := range slices.Backward(r.flags) {
		group := map[string]string{} // this release's first name to the newest one
		for _, name := range flags.Names() {
			own := flags[name].Canonical
			if newest, seen := r.canonical[name]; seen && (group[own] == "" || name == own) {
				group[own] = newest
			}
		}
		for name, flag := range flags {
			if newest := group[flag.Canonical]; newest != "" {
				flag.Canonical = newest
				flags[name] = flag
			}
			if r.canonical[name] == "" {
				r.canonical[name] = flag.Canonical
			}
		}
	}
}

// at is the place of the known release that v is one of (0.5.3 and 0.5.3.post2 are 0.5.3.post3's),
// else of the newest one before v, else of the oldest. An unknown version counts as the newest.
func (r *releases) at(v Version) int {
	if v == (Version{}) {
		return len(r.versions) - 1
	}
	i, exact := slices.BinarySearchFunc(r.versions, v, Version.Compare)
	if exact {
		return i
	}
	if i < len(r.versions) && !v.Pre {
		if next := r.versions[i]; next.Major == v.Major && next.Minor == v.Minor && next.Patch == v.Patch {
			return i
		}
	}
	return max(0, i-1)
}

// Releases lists the SGLang releases whose options are known exactly, oldest first. What changed
// between two of them is dated to the later one.
func Releases() []Version { return slices.Clone(known().versions) }

// FlagsOf returns the options of a version, and which known release they were taken from: v itself,
// else another post-release of it, else the newest one before it (0.5.24rc1 has those of 0.5.23),
// else the oldest. An unknown version (the zero value) counts as the newest.
func FlagsOf(v Version) (Flags, Version) {
	r := known()
	i := r.at(v)
	return r.flags[i], r.versions[i]
}

// DefaultOf returns the value a version's parser gives an option that is not passed. nil means that
// the server chooses when it starts ("mem-fraction-static"). ok is false when the version has no
// such option. name is any of its names, without dashes.
func DefaultOf(name string, v Version) (value any, ok bool) {
	flags, _ := FlagsOf(v)
	flag, ok := flags[name]
	return flag.Default, ok
}

// Known reports whether a name is a flag of any known SGLang release. Environment variables
// ("env.NAME") are always known.
func Known(name string) bool {
	if rest, ok := strings.CutPrefix(name, EnvPrefix); ok {
		return rest != ""
	}
	_, inTable := Lookup(name)
	return inTable || known().canonical[name] != ""
}

// Canonical is the name by which sgtune calls the option that has a name in any known release:
// tp-size for tensor-parallel-size. A renamed option is another one (see CurrentName); a name that
// no release knows stays as it is.
func Canonical(name string) string {
	if newest := known().canonical[name]; newest != "" {
		return newest
	}
	return name
}

// firstAndLast are the known releases that have a name; ok is false when none has.
func firstAndLast(name string) (first, last Version, ok bool) {
	r := known()
	for i, flags := range r.flags {
		if !flags.Has(name) {
			continue
		}
		if !ok {
			first, ok = r.versions[i], true
		}
		last = r.versions[i]
	}
	return first, last, ok
}

// goneSince is the first known release after the last one that has a name; ok is false while the
// newest has it.
func goneSince(name string) (Version, bool) {
	_, last, ok := firstAndLast(name)
	r := known()
	i := slices.Index(r.versions, last)
	if !ok || i < 0 || i == len(r.versions)-1 {
		return Version{}, false
	}
	return r.versions[i+1], true
}

// newestName is the newest release's name for the option that has names, which --help lists
// together; the first of them when no release knows it.
func newestName(names []string) string {
	for _, name := range names {
		if newest := known().canonical[name]; newest != "" {
			return newest
		}
	}
	return names[0]
}
