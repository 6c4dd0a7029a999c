package launch

import (
	"encoding/json"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sgtune/sglang"
)

var tagVersion = regexp.MustCompile(`\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)?`)

// runtimes are the programs that run a command inside an image, and the subcommands that do.
var runtimes = map[string][]string{
	"docker": {"run", "exec", "create"}, "podman": {"run", "exec", "create"}, "nerdctl": {"run", "exec", "create"},
	"nvidia-docker": {"run", "exec"}, "apptainer": {"exec", "run"}, "singularity": {"exec", "run"},
}

// containerRun finds docker run and its relatives in a command; -1 when there is none.
func containerRun(words []string) int {
	for i, w := range words {
		subcommands := runtimes[path.Base(w)]
		if subcommands == nil {
			continue
		}
		for _, s := range words[i+1:] {
			if slices.Contains(subcommands, s) {
				return i
			}
		}
	}
	return -1
}

// containerCall is one docker run, taken apart.
type containerCall struct {
	Container
	env      []string // -e words: NAME=VALUE or NAME
	envFiles []string
	dir      string
	entry    []string // the entry point that the options name
	command  []string // what runs inside, that entry point included
}

// apptainerValues are options of apptainer and singularity that take a value; every other one takes none.
var apptainerValues = map[string]bool{
	"-B": true, "--bind": true, "--mount": true, "--env": true, "--env-file": true, "-H": true, "--home": true, "--pwd": true, "--cwd": true,
	"-W": true, "--workdir": true, "-o": true, "--overlay": true, "-S": true, "--scratch": true, "--network": true, "--security": true,
	"--add-caps": true, "--drop-caps": true, "--app": true, "--fusemount": true, "--hostname": true, "--dns": true,
}

// readContainer takes a container command apart; words start at the runtime.
func readContainer(words []string) (containerCall, bool) {
	runtime := path.Base(words[0])
	c := containerCall{Container: Container{Runtime: runtime}}
	i := 1
	for i < len(words) && !slices.Contains(runtimes[runtime], words[i]) {
		i++
	}
	if i >= len(words) {
		return c, false
	}
	verb, rest := words[i], words[i+1:]
	if c.apptainer() {
		rest = rest[c.apptainerOptions(rest):]
	} else {
		rest = rest[c.runOptions(rest):]
		c.Runs = verb != "exec"
	}
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return c, false
	}
	c.Image = rest[0]
	c.command = slices.Concat(c.entry, rest[1:])
	if verb == "exec" && !c.apptainer() { // the name of a running container, not an image
		c.Args, c.Image = append(c.Args, c.Image), ""
	}
	return c, true
}

func (c containerCall) apptainer() bool {
	return c.Runtime == "apptainer" || c.Runtime == "singularity"
}

// runOptions reads the options of docker run and exec and their relatives, and says where they end.
func (c *containerCall) runOptions(words []string) int {
	args, end := sglang.RunArgs(words)
	c.Args = slices.Clone(words[:end])
	for _, a := range args {
		switch a.Name {
		case "--env":
			c.env = append(c.env, a.Value)
		case "--env-file":
			c.envFiles = append(c.envFiles, a.Value)
		case "--workdir":
			c.dir = a.Value
		case "--entrypoint":
			c.entry, c.PlainEntry = entryPoint(a.Value), true
		}
	}
	return end
}

// entryPoint is the value of --entrypoint as words: a program, or a JSON list of words (podman).
func entryPoint(value string) []string {
	var words []string
	if json.Unmarshal([]byte(value), &words) == nil {
		return words
	}
	if value == "" {
		return nil
	}
	return []string{value}
}

// apptainerOptions is runOptions for apptainer and singularity.
func (c *containerCall) apptainerOptions(words []string) int {
	i := 0
	for i < len(words) && strings.HasPrefix(words[i], "-") && words[i] != "--" {
		name, value, inline := strings.Cut(words[i], "=")
		used := 1
		if apptainerValues[words[i]] && !inline && i+1 < len(words) {
			value, used = words[i+1], 2
		}
		c.Args = append(c.Args, words[i:i+used]...)
		i += used
		switch name {
		case "-e", "--env":
			c.env = append(c.env, strings.Split(value, ",")...)
		case "--env-file":
			c.envFiles = append(c.envFiles, value)
		case "-w", "--workdir", "--pwd", "--cwd":
			c.dir = value
		}
	}
	return i
}

// environ is the environment the container's own options give it. A variable without a value is
// passed through; what it has outside stands for it, or a reference.
func (c *containerCall) environ(opt Options, dir string, outside func(string) (string, bool), note func(string, ...any)) map[string]string {
	env := map[string]string{}
	for _, name := range c.envFiles {
		vars := envFile(opt, dir, name, note)
		if vars == nil && !unknown(name) {
			c.EnvFiles = append(c.EnvFiles, joinDir(dir, opt, name))
		}
		maps.Copy(env, vars)
	}
	for _, word := range c.env {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			if value, ok = outside(name); !ok || secretName(name) {
				value = reference(name)
			}
		}
		env[name] = value
	}
	return env
}

// envFile reads NAME=VALUE lines of a file the source names.
func envFile(opt Options, dir, name string, note func(string, ...any)) map[string]string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	if opt.ReadFile == nil || unknown(name) {
		note("The environment file %s was not read.", name)
		return nil
	}
	source, err := opt.ReadFile(name)
	if err != nil || len(source) > maxSource {
		note("The environment file %s cannot be read here; what it sets is unknown.", name)
		return nil
	}
	return parseEnvFile(string(source))
}

// parseEnvFile reads the lines of an env file as docker and systemd do: comments and empty lines are
// skipped, quotes around a whole value fall.
func parseEnvFile(text string) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		m := assignment.FindStringSubmatch(strings.TrimPrefix(line, "export "))
		if m == nil {
			continue
		}
		value := m[2]
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		env[m[1]] = value
	}
	return env
}

// secretName reports whether a variable or flag holds a secret: the rule of the study file.
func secretName(name string) bool { return secretSuffix.MatchString(name) }

var secretSuffix = regexp.MustCompile(`(?i)([_-](token|key|secret|password))$`)
