package launch

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sgtune/sglang"
)

// Plan is a launch sorted into the parts of a study.
type Plan struct {
	Launch   Launch
	Study    string // its name
	Version  sglang.Version
	Assumed  bool // nobody said the version: it is taken to be the newest known one
	Model    string
	Flags    []Entry // fixed, the same in every trial
	Baseline []Entry // today's values of searched knobs
	Env      []Entry
	Box      *Box        // the container that each trial's server has, nil for none
	Left     []Entry     // flags that are left out, each with its reason
	LeftEnv  []Entry     // variables that are left out
	Defaults []string    // words dropped because the version does the same without them
	Warnings []string    // what a person should know, one sentence or two each
	Space    []Dimension // what is proposed for the search
	Workload string      // file, "" when still to be filled in
	From     string      // what the launch was read from, for the head of the file
	secrets  map[string]string
	resolved bool
}

// Entry is one line of a section: a flag or variable, its value, and a comment.
type Entry struct {
	Name    string
	Value   any
	Comment string
}

// PlanOptions are what the person who asked for a plan says beside the launch.
type PlanOptions struct {
	Version  sglang.Version // of the SGLang the study is for; zero: what the launch says, else the newest
	Workload string         // file with the requests to replay
	From     string         // where the launch was read, as a person wrote it
}

// NewPlan sorts a launch into the parts of a study.
func NewPlan(l Launch, opt PlanOptions) *Plan {
	p := &Plan{Launch: l, Version: opt.Version, Workload: opt.Workload, From: opt.From, secrets: map[string]string{}, resolved: l.Resolved}
	if p.Version == (sglang.Version{}) {
		v, err := sglang.ParseVersion(l.Version)
		if p.Assumed = err != nil; p.Assumed {
			releases := sglang.Releases()
			v = releases[len(releases)-1]
		}
		p.Version = v
	}
	args := sglang.ParseArgs(l.Args, p.Version)
	p.sortEnv() // first: it knows secrets that arguments may repeat
	p.sortBox()
	for _, a := range args {
		p.sortArgument(a)
	}
	p.settleModel()
	p.settleHicache()
	p.advise()
	p.propose()
	p.Study = studyName(p.Model)
	return p
}

// config is the launch's own configuration, flags that are left out aside.
func (p *Plan) config() sglang.Config {
	c := sglang.Config{}
	for _, list := range [][]Entry{p.Flags, p.Baseline} {
		for _, e := range list {
			c[e.Name] = e.Value
		}
	}
	return c
}

func (p *Plan) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(p.Warnings, text) {
		p.Warnings = append(p.Warnings, text)
	}
}

func (p *Plan) leave(name string, value any, comment string) {
	p.Left = append(p.Left, Entry{name, value, comment})
}

// sortArgument puts one argument where it belongs.
func (p *Plan) sortArgument(a sglang.Argument) {
	typed := strings.Join(a.Words, " ")
	switch {
	case a.Repeat:
		p.warn("--%s is given more than once; the last one counts, as in SGLang.", a.Typed)
	case a.Name == "model-path" && !a.Stray:
		p.Model = typed
	case p.unusable(a, typed):
	case strings.HasPrefix(a.Name, "sim-"):
		p.Flags = append(p.Flags, Entry{Name: a.Name, Value: simValue(a.Words), Comment: "of the simulated server"})
	case a.Err != nil:
		p.refused(a)
	default:
		p.place(a, typed)
	}
}

// unusable leaves out what has no value that could be written down, and reports whether it did.
func (p *Plan) unusable(a sglang.Argument, typed string) bool {
	switch {
	case a.Stray && unknown(typed):
		p.warn("The arguments in %s are not known: add them to server.flags.", typed)
	case a.Stray:
		p.warn("%q belongs to no flag; SGLang refuses such words. It is left out.", shorten(typed, 80))
	case secretName(a.Name) && typed != "" && !strings.HasPrefix(typed, "${"):
		p.secret(a.Name, typed)
	case unknown(typed):
		p.leave(a.Name, typed, "FILL IN: known only when the source runs")
		p.warn("--%s is %s in the source, which is known only when it runs: fill it in.", a.Name, typed)
	case sglang.Mask(a.Name+"="+typed) != a.Name+"="+typed:
		p.leave(a.Name, sglang.Mask(typed), "holds a secret, which is not written here")
		p.warn("--%s holds a secret, which is not written into the file; add it where only you can read it.", a.Name)
	case len(a.Words) > 0 && strings.TrimSpace(typed) == "":
		p.leave(a.Name, typed, "empty: add it by hand if SGLang needs that")
		p.warn("--%s is empty and left out.", a.Name)
	default:
		return false
	}
	return true
}

// place puts an argument SGLang takes among the flags, unless it changes nothing or has no place in a
// study.
func (p *Plan) place(a sglang.Argument, typed string) {
	if a.Err = sglang.CheckValue(a.Name, a.Value); a.Err != nil {
		p.refused(a)
		return
	}
	if a.Note != "" {
		p.warn("%s.", a.Note)
	}
	if a.Name != "port" && p.isDefault(a) {
		p.Defaults = append(p.Defaults, strings.TrimSpace("--"+a.Name+" "+typed))
		return
	}
	if why := leftOut(a); why != "" {
		p.leave(a.Name, a.Value, why)
		return
	}
	p.Flags = append(p.Flags, Entry{a.Name, p.absolute(a.Value), comment(a)})
}

// simValue is the value of one of the simulated server's own flags.
func simValue(words []string) any {
	if len(words) == 0 {
		return true
	}
	if n, err := strconv.ParseFloat(words[0], 64); err == nil && sglang.FormatValue(n) == words[0] {
		return n
	}
	return strings.Join(words, " ")
}

// comment is what stands beside a flag in the file.
func comment(a sglang.Argument) string {
	switch {
	case a.Note == "":
		return ""
	case strings.Contains(a.Note, "does nothing"):
		return "does nothing: can go"
	case a.Name != a.Typed:
		return "written --" + a.Typed + " in the source"
	}
	return "deprecated"
}

// refused keeps an argument this version does not take as a comment.
func (p *Plan) refused(a sglang.Argument) {
	typed := strings.Join(a.Words, " ")
	hint := ""
	if p.Assumed {
		hint = fmt.Sprintf(" (if your SGLang is older than %s, say so with --sglang-version)", p.Version)
	}
	p.warn("Left out: %s%s.", strings.TrimSuffix(a.Err.Error(), "."), hint)
	p.leave(a.Name, sglang.Mask(typed), fmt.Sprintf("not taken by SGLang %s", p.Version))
}

// secret leaves a secret flag out and refers to it.
func (p *Plan) secret(name, value string) {
	ref := "SGLANG_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	for known, its := range p.secrets {
		if known == value {
			ref = its
		}
	}
	p.secrets[value] = ref
	p.leave(name, reference(ref), "a secret: not written here; trials listen on 127.0.0.1 only and need none")
	p.warn("The value of %s is a secret and was not written into the file. Trials run without it, on 127.0.0.1.", name)
}

// leftOut says why a flag has no place in a study, "" when it has.
func leftOut(a sglang.Argument) string {
	switch a.Name {
	case "port":
		return "sgtune picks a free port for each trial"
	case "host":
		return "trials listen on 127.0.0.1"
	case "skip-server-warmup":
		return "a server would be called ready before it has made one token"
	case "log-level":
		if v, _ := a.Value.(string); v != "info" && v != "debug" {
			return "sgtune reads the lines that this silences"
		}
	}
	return ""
}

// isDefault reports whether the version does the same without the argument. When nobody said the
// version, the default must be the same in every release that has the flag.
func (p *Plan) isDefault(a sglang.Argument) bool {
	versions := []sglang.Version{p.Version}
	if p.Assumed {
		versions = sglang.Releases()
	}
	for _, v := range versions {
		if d, ok := sglang.DefaultOf(a.Name, v); ok && (d == nil || !equalJSON(d, a.Value)) {
			return false
		}
	}
	_, ok := sglang.DefaultOf(a.Name, p.Version)
	return ok
}

func equalJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// absolute makes a path that starts at the launch's working directory whole: trials run elsewhere.
func (p *Plan) absolute(value any) any {
	s, ok := value.(string)
	if !ok || !filepath.IsAbs(p.Launch.Dir) || !strings.HasPrefix(s, "./") && !strings.HasPrefix(s, "../") {
		return value
	}
	return filepath.Join(p.Launch.Dir, s)
}

func (p *Plan) settleModel() {
	switch {
	case p.Model == "":
		p.Model = "/models/FILL-IN"
		p.warn("No model is given in the source: write it into server.model.")
	case unknown(p.Model):
		p.warn("The model is %s in the source, which is known only when it runs: write it into server.model.", p.Model)
	default:
		p.Model, _ = p.absolute(p.Model).(string)
	}
}

// settleHicache spells the hierarchical cache as studies do: hicache-size above 0 turns it on, so the
// switch goes; a size without the switch does nothing and goes too.
func (p *Plan) settleHicache() {
	c := p.config()
	on, _ := c["enable-hierarchical-cache"].(bool)
	size, _ := c.Float("hicache-size")
	p.Flags = slices.DeleteFunc(p.Flags, func(e Entry) bool {
		switch {
		case on && size > 0 && e.Name == "enable-hierarchical-cache":
			return true // hicache-size says it
		case !on && strings.HasPrefix(e.Name, "hicache-"):
			p.leave(e.Name, e.Value, "SGLang ignores it without --enable-hierarchical-cache")
			p.warn("--%s does nothing without --enable-hierarchical-cache; it is left out.", e.Name)
			return true
		}
		return false
	})
}

// sortEnv puts the launch's variables where they belong.
func (p *Plan) sortEnv() {
	handed := "servers inherit it"
	if p.Launch.Container.repeatable() {
		handed = "server.container.args hands it over"
	}
	args := strings.Join(p.Launch.Args, "\x00")
	for _, name := range slices.Sorted(maps.Keys(p.Launch.Env)) {
		value := p.Launch.Env[name]
		switch {
		case value == reference(name):
			p.LeftEnv = append(p.LeftEnv, Entry{name, value, "passed through: set it where sgtune runs"})
		case secretName(name) || sglang.Mask(name+"="+value) != name+"="+value:
			if len(value) >= 4 {
				p.secrets[value] = name
			}
			p.LeftEnv = append(p.LeftEnv, Entry{name, reference(name), "a secret: set it where sgtune runs, " + handed})
			p.warn("%s is a secret and was not written into the file: export it where sgtune runs, %s.", name, handed)
		case unknown(value):
			p.LeftEnv = append(p.LeftEnv, Entry{name, value, "FILL IN: known only when the source runs"})
			p.warn("The variable %s is %s in the source, which is known only when it runs: fill it in.", name, value)
		case !matters(name) && value != "" && strings.Contains(args, value):
			// It only carries a value to an argument.
		default:
			p.Env = append(p.Env, Entry{Name: name, Value: value})
		}
	}
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// studyName makes a study's name of a model: its last part, in the letters a name may have.
func studyName(model string) string {
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(path.Base(strings.TrimRight(model, "/"))), "-"), "-.")
	if name == "" || name == "fill-in" {
		return "my-study"
	}
	return shorten(name, 100)
}

// Hide replaces every secret of the launch in a text by a reference to it.
func (p *Plan) Hide(text string) string {
	for value, name := range p.secrets {
		text = strings.ReplaceAll(text, value, reference(name))
	}
	return text
}

// Template is a plan of no launch: a study to fill in.
func Template(opt PlanOptions) *Plan {
	l := Launch{
		Command: []string{"python3", "-m", "sglang.launch_server"},
		Args:    []string{"--model-path", "/models/FILL-IN", "--tp-size", "8", "--mem-fraction-static", "0.85"},
		Env:     map[string]string{},
	}
	p := NewPlan(l, opt)
	p.Warnings = nil
	for i := range p.Flags {
		p.Flags[i].Comment = "FILL IN: what you pass today"
	}
	for i := range p.Baseline {
		p.Baseline[i].Comment = "FILL IN: today's values; every gain is measured against them"
	}
	return p
}
