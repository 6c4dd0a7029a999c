package launch

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is what a launch was read from.
type Kind string

// Kinds of sources.
const (
	KindScript     Kind = "shell script"
	KindCommand    Kind = "command line"
	KindSlurm      Kind = "Slurm batch script"
	KindUnit       Kind = "systemd unit"
	KindCompose    Kind = "compose file"
	KindKubernetes Kind = "Kubernetes manifest"
	KindConfig     Kind = "SGLang config file"
	KindDockerfile Kind = "Dockerfile"
	KindArgv       Kind = "argument list"
	KindProcess    Kind = "process"
	KindServer     Kind = "running server"
)

// Launch is one way an SGLang server is launched today.
type Launch struct {
	Kind      Kind
	Name      string            // of the unit, service, container, function or process; "" when it has none
	Line      int               // where in the source, from 1; 0 when that means nothing
	Command   []string          // what starts SGLang: wrappers worth keeping, then its launcher
	Args      []string          // SGLang's own arguments, in order
	Env       map[string]string // variables the launch sets; a bare reference like ${HF_TOKEN} is one that is passed through
	Dir       string            // working directory, "" when unknown
	Container *Container        // the container it runs in, nil for none
	Version   string            // SGLang's version as the source says it, "" when it does not
	Resolved  bool              // Args are what the server resolved, not what a person typed
	Notes     []string          // what was left out or could not be known, for a person
}

// Container is what runs around SGLang.
type Container struct {
	Runtime string   // docker, podman, apptainer, compose, kubernetes, ...
	Image   string   // "" when unknown
	Args    []string // the runtime's own options
	Runs    bool     // it is made for this launch (docker run), not one that runs anyway
	Dir     string   // where the runtime is called: relative volumes start there; "" when unknown
	// EnvFiles are files with variables that could not be read here.
	EnvFiles []string
	// PlainEntry says that the launch's command replaces the image's entry point instead of being given to it.
	PlainEntry bool
}

// Options are what a reader may use beside the source itself.
type Options struct {
	Path     string                            // of the source; relative files start at its folder
	Lookup   func(name string) (string, bool)  // the reader's own environment, as the shell would use it; nil for none
	ReadFile func(path string) ([]byte, error) // other files the source names (env files, sourced scripts); nil: not read
}

// maxSource is the largest source read, in bytes: launch scripts are small.
const maxSource = 256 << 10

// ErrStudy says that the source is a study file already.
var ErrStudy = errors.New("this is a study file already; check it with sgtune check")

// Read finds every launch of SGLang in a source, in the order of the source. name is shown in
// messages. The kind of the source is told by its content. No launch is an error that says what to
// give instead.
func Read(name string, source []byte, opt Options) ([]Launch, error) {
	return read(name, source, opt, nil)
}

// ReadCommand is Read for a command line as a shell takes it, like docker run ... or sglang serve ....
func ReadCommand(name, line string, opt Options) ([]Launch, error) {
	launches, err := read(name, []byte(line), opt, readScript)
	for i := range launches {
		launches[i].Kind, launches[i].Line = KindCommand, 0
	}
	return launches, err
}

// read reads a source by how, nil: by its content.
func read(name string, source []byte, opt Options, how func([]byte, Options) ([]Launch, error)) (launches []Launch, err error) {
	defer func() { // outside parsers panic on some malformed sources
		if r := recover(); r != nil {
			launches, err = nil, fmt.Errorf("%s cannot be understood; give the plain command line in a file of its own", name)
		}
	}()
	switch {
	case len(source) > maxSource:
		return nil, fmt.Errorf("%s has more than %d KiB, more than a launch script ever has; give the script, unit or yaml that starts SGLang", name, maxSource>>10)
	case !utf8.Valid(source) || bytes.ContainsRune(source, 0):
		return nil, fmt.Errorf("%s is no text; give the script, unit or yaml that starts SGLang", name)
	case len(bytes.TrimSpace(source)) == 0:
		return nil, fmt.Errorf("%s is empty; give the script, unit or yaml that starts SGLang", name)
	}
	source = bytes.ReplaceAll(bytes.TrimPrefix(source, []byte("\xef\xbb\xbf")), []byte("\r\n"), []byte("\n"))
	if how == nil {
		how = reader(opt.Path, source)
	}
	launches, err = how(source, opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range launches {
		launches[i].withConfig(opt)
	}
	if launches = firstNodes(distinct(launches)); len(launches) == 0 {
		return nil, fmt.Errorf("%s starts no SGLang server as far as can be read: nothing in it is `python -m sglang.launch_server` or `sglang serve`; "+
			"give the file that does, or the pid or URL of the running server", name)
	}
	return launches, nil
}

// reader tells the kind of a source by what is in it; the path only decides between kinds that look
// alike.
func reader(path string, source []byte) func([]byte, Options) ([]Launch, error) {
	text := string(source)
	base := filepath.Base(path)
	first := firstLine(text)
	switch {
	case strings.HasPrefix(text, "#!"):
		return readScript
	case isUnit(text):
		return readUnit
	case isDockerfile(base, first):
		return readDockerfile
	case isMarkdown(text):
		return readMarkdown
	case isYAML(base, first):
		return readYAML
	case isMakefile(base, text):
		return readMakefile
	}
	return readScript
}

// firstLine is the first line that says something.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

// distinct drops launches that are the same as an earlier one.
func distinct(all []Launch) []Launch {
	var out []Launch
	for _, l := range all {
		if !slices.ContainsFunc(out, func(o Launch) bool {
			return slices.Equal(o.Command, l.Command) && slices.Equal(o.Args, l.Args) && maps.Equal(o.Env, l.Env)
		}) {
			out = append(out, l)
		}
	}
	return out
}

// firstNodes drops the other ranks of a server on several nodes, where its first one is there too.
func firstNodes(all []Launch) []Launch {
	first := func(other Launch) int {
		rank, address := other.last("--node-rank"), other.last("--dist-init-addr")
		if n, err := strconv.Atoi(rank); err != nil || n < 1 || address == "" {
			return -1
		}
		return slices.IndexFunc(all, func(l Launch) bool { return l.last("--node-rank") == "0" && l.last("--dist-init-addr") == address })
	}
	var out []Launch
	for _, l := range all {
		if first(l) < 0 {
			out = append(out, l)
		}
	}
	if len(out) < len(all) {
		for i := range out {
			out[i].note("The source starts the other nodes of the same server too; this is the first.")
		}
	}
	return out
}

// last is the value of an argument written in full, "" when it is not given.
func (l Launch) last(name string) string {
	value := ""
	for i, word := range l.Args {
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			value = v
		} else if word == name && i+1 < len(l.Args) {
			value = l.Args[i+1]
		}
	}
	return value
}

// joinDir is the path of a file a launch names: relative to its working directory, else to the
// source's folder.
func joinDir(dir string, opt Options, name string) string {
	switch {
	case filepath.IsAbs(name):
		return name
	case dir != "":
		return filepath.Join(dir, name)
	}
	return filepath.Join(filepath.Dir(opt.Path), name)
}

// Describe names a launch among several: where it stands and what tells it from the others.
func (l Launch) Describe() string {
	var parts []string
	if l.Name != "" {
		parts = append(parts, l.Name)
	}
	if l.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", l.Line))
	}
	text := strings.Join(append(slices.Clone(l.Command), l.Args...), " ")
	return strings.Join(append(parts, shorten(text, 160)), ": ")
}

func (l *Launch) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(l.Notes, text) {
		l.Notes = append(l.Notes, text)
	}
}

// shorten cuts a text to at most limit bytes between two characters.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// unknown reports whether a word holds something only running the source would tell.
func unknown(word string) bool { return strings.Contains(word, "${") || strings.Contains(word, "$(") }
