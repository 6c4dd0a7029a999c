package launch

import (
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	command  []string // what runs inside, the entry point included
}

// bareOptions are options of docker run and exec that take no value; every other one takes one.
var bareOptions = map[string]bool{
	"--detach": true, "--interactive": true, "--tty": true, "--rm": true, "--privileged": true, "--init": true, "--read-only": true,
	"--publish-all": true, "--no-healthcheck": true, "--oom-kill-disable": true, "--sig-proxy": true, "--disable-content-trust": true,
	"--quiet": true, "--replace": true, "--tls-verify": true, "--no-hosts": true, "--help": true,
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
	exec := words[i] == "exec"
	apptainer := runtime == "apptainer" || runtime == "singularity"
	entry := ""
	i++
	for i < len(words) && strings.HasPrefix(words[i], "-") {
		if words[i] == "--" {
			i++
			break
		}
		name, value, used := option(words[i:], apptainer)
		c.Args = append(c.Args, words[i:i+used]...)
		i += used
		switch name {
		case "-e", "--env":
			c.env = append(c.env, splitEnv(value, apptainer)...)
		case "--env-file":
			c.envFiles = append(c.envFiles, value)
		case "-w", "--workdir", "--pwd", "--cwd":
			c.dir = value
		case "--entrypoint":
			entry = value
		}
	}
	if i >= len(words) {
		return c, false
	}
	c.Image = words[i]
	c.command = slices.Clone(words[i+1:])
	if entry != "" {
		c.command = append([]string{entry}, c.command...)
	}
	if exec && !apptainer { // the name of a running container, not an image
		c.Args, c.Image = append(c.Args, c.Image), ""
	}
	return c, true
}

func splitEnv(value string, apptainer bool) []string {
	if apptainer {
		return strings.Split(value, ",")
	}
	return []string{value}
}

// option reads one option: its name, its value, and how many words it takes.
func option(words []string, apptainer bool) (name, value string, used int) {
	w := words[0]
	next := func() (string, int) {
		if len(words) > 1 {
			return words[1], 2
		}
		return "", 1
	}
	if strings.HasPrefix(w, "--") {
		if name, value, ok := strings.Cut(w, "="); ok {
			return name, value, 1
		}
		if bareOptions[w] || apptainer && !apptainerValues[w] {
			return w, "", 1
		}
		value, used = next()
		return w, value, used
	}
	if apptainer {
		if apptainerValues[w] {
			value, used = next()
			return w, value, used
		}
		return w, "", 1
	}
	for i, letter := range w[1:] { // -it, -eNAME=VALUE, -dp 8000:8000
		if strings.ContainsRune("ditPq", letter) {
			continue
		}
		name = "-" + string(letter)
		if rest := w[1+i+len(string(letter)):]; rest != "" {
			return name, strings.TrimPrefix(rest, "="), 1
		}
		value, used = next()
		return name, value, used
	}
	return w, "", 1
}

// environ is the environment the container's own options give it. A variable without a value is
// passed through; what it has outside stands for it, or a reference.
func (c containerCall) environ(opt Options, dir string, outside func(string) (string, bool), note func(string, ...any)) map[string]string {
	env := map[string]string{}
	for _, name := range c.envFiles {
		maps.Copy(env, envFile(opt, dir, name, note))
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
