package tuner

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sgtune/sglang"
)

// readContainer reads server.container.
func (d *decoder) readContainer(f field) {
	c := &sglang.Container{}
	d.containerAt = f
	seen := d.keys(f.value, "server.container", map[string]handler{
		"runtime": func(g field) { c.Runtime, _ = d.choice(g, "server.container.runtime", "docker", "podman") },
		"image": func(g field) {
			w, ok := d.word(g, "server.container.image", "lmsysorg/sglang:v0.5.5")
			if ok && (strings.HasPrefix(w, "-") || strings.ContainsAny(w, " \t\n")) {
				d.wrong(g.value, "`server.container.image` cannot be %s; write the name of an image, like lmsysorg/sglang:v0.5.5", quote(w))
			}
			c.Image = w
		},
		"args": func(g field) { d.readContainerArgs(g, c) },
	})
	if f.value.kind != mapping {
		return
	}
	for _, name := range []string{"runtime", "image"} {
		if !seen[name] {
			d.at(f.line, f.col, "`server.container.%s` is missing; write container: {runtime: docker, image: lmsysorg/sglang:v0.5.5, args: [--gpus, all, --ipc, host]}", name)
		}
	}
	d.study.Server.Container = c
}

// runSwitches are the flags of docker run and podman run that take no value; every other one takes one. Both spell
// them alike.
var runSwitches = []string{
	"-d", "--detach", "--disable-content-trust", "--help", "--init", "-i", "--interactive", "--no-healthcheck", "--oom-kill-disable", "--privileged",
	"-P", "--publish-all", "-q", "--quiet", "--read-only", "--rm", "--sig-proxy", "-t", "--tty", "--use-api-socket",
	"--env-host", "--http-proxy", "--no-hosts", "--no-hostname", "--passwd", "--read-only-tmpfs", "--replace", "--rmi", "--rootfs", "--tls-verify", "--unsetenv-all",
}

// What sgtune itself does to a container, so that an argument must not.
const (
	itsLife    = "sgtune removes the container itself, once it has written down how it ended"
	itsName    = "sgtune names and labels the container itself, to find it again after a crash"
	itsStart   = "sgtune runs the container in the background itself and reads its log"
	itsNetwork = "the container has the machine's own network: sgtune chooses the port, and a proxy in between would be measured, too"
)

// refusedRun are arguments of run that would break what sgtune promises, and why.
var refusedRun = map[string]string{
	"--rm": itsLife, "--rmi": itsLife, "--restart": "a server that dies must stay dead, or its failure is not seen", "--replace": itsName,
	"--name": itsName, "--cidfile": "the second trial would find the file of the first", "--label-file": itsName,
	"--detach": itsStart, "--interactive": itsStart, "--tty": itsStart, "--detach-keys": itsStart, "--attach": itsStart, "--help": itsStart,
	"--publish": itsNetwork, "--publish-all": itsNetwork, "--pod": itsNetwork, "--network": itsNetwork,
	"--oom-kill-disable": "a server that reaches its limit would hang instead of ending", "--timeout": "sgtune has its own limits (server.ready_timeout, budget)",
	"--health-on-failure": "a server that dies must stay dead, or its failure is not seen", "--rootfs": "server.container.image names what runs",
	"--log-driver": "sgtune reads the log with logs", // only with none
}

var shortRun = map[string]string{
	"-d": "--detach", "-i": "--interactive", "-t": "--tty", "-P": "--publish-all", "-p": "--publish", "-q": "--quiet", "-a": "--attach", "-l": "--label",
	"-e": "--env", "-m": "--memory", "-v": "--volume", "-u": "--user", "-w": "--workdir", "-h": "--hostname", "-c": "--cpu-shares", "--net": "--network",
}

// readContainerArgs reads the arguments of run and refuses those that sgtune cannot live with.
func (d *decoder) readContainerArgs(f field, c *sglang.Container) {
	if f.value.kind == list && len(f.value.items) == 0 {
		return
	}
	words, ok := d.words(f, "server.container.args", "[--gpus, all, --ipc, host, -v, /models:/models]")
	if !ok {
		return
	}
	c.Args = words
	for i := 0; i < len(words); i++ {
		name, value, n := runArg(words[i:])
		at := f.value.items[i]
		if name == "" {
			d.wrong(at, "`server.container.args` holds %s, which is no flag and no flag's value: %s would take it for the image; the image stands under image:",
				quote(words[i]), runtimeName(c))
			return
		}
		d.judgeRunArg(at, f.value.items[min(i+n-1, len(words)-1)], c, name, value)
		i += n - 1
	}
}

func runtimeName(c *sglang.Container) string {
	if c.Runtime == "" {
		return "the runtime"
	}
	return c.Runtime
}

// runArg splits off the first argument: its long name, its value, and how many words it takes; no name where a word
// is no flag.
func runArg(words []string) (name, value string, n int) {
	word := words[0]
	if len(word) < 2 || word[0] != '-' || word == "--" {
		return "", "", 1
	}
	if !strings.HasPrefix(word, "--") {
		if cluster := strings.TrimLeft(word[1:], "ditPq"); cluster == "" { // -dit
			for _, long := range []string{"-d", "-i", "-t", "-P", "-q"} {
				if strings.Contains(word, long[1:]) {
					return shortRun[long], "", 1
				}
			}
		}
		if len(word) > 2 { // -m400g
			return long(word[:2]), strings.TrimPrefix(word[2:], "="), 1
		}
	}
	name, value, inline := strings.Cut(word, "=")
	if inline || slices.Contains(runSwitches, name) || len(words) == 1 {
		return long(name), value, 1
	}
	return long(name), words[1], 2
}

func long(name string) string {
	if l, ok := shortRun[name]; ok {
		return l
	}
	return name
}

// judgeRunArg refuses one argument, or takes from it what the study must know.
func (d *decoder) judgeRunArg(at, valueAt *node, c *sglang.Container, name, value string) {
	why, bad := refusedRun[name]
	switch name {
	case "--network":
		bad = value != "host"
	case "--log-driver":
		bad = value == "none"
	case "--label":
		bad, why = strings.HasPrefix(value, "sgtune."), itsName
	case "--env":
		variable, _, _ := strings.Cut(value, "=")
		bad, why = strings.HasPrefix(variable, "SGTUNE_"), itsName
		if secretName(variable) {
			d.secrets = append(d.secrets, valueAt)
		}
	case "--memory":
		n, ok := runBytes(value)
		if !ok || n == 0 {
			d.wrong(valueAt, "`server.container.args` sets %s %s, which is no size; write a number with k, m or g behind it, like 400g", name, quote(value))
			return
		}
		c.Memory = n
	}
	if bad {
		d.wrong(at, "`server.container.args` holds %s: %s; remove it", quote(strings.TrimSuffix(name+" "+value, " ")), why)
	}
}

// runBytes reads a size as the runtimes do: 400g is 400 x 2^30 bytes.
func runBytes(text string) (int64, bool) {
	text = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text), "b"), "i")
	shift := 0
	if i := strings.IndexAny(text, "kmgtp"); i >= 0 && i == len(text)-1 {
		shift, text = 10*(1+strings.IndexByte("kmgtp", text[i])), text[:i]
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || v < 0 || v > 1<<40 {
		return 0, false
	}
	return int64(v * float64(int64(1)<<shift)), true
}

// settleContainer judges what the whole file shows of a container.
func (d *decoder) settleContainer() {
	s := d.study
	c := s.Server.Container
	if c == nil {
		return
	}
	if s.Host.Kind != HostLocal && s.Host.Kind != HostSSH && !d.foreign {
		d.at(d.containerAt.line, d.containerAt.col, "`server.container` is for local and ssh hosts, not for %s; remove it", s.Host.Kind)
	}
}

// containerNotes are what may be missing in the arguments of a container.
func containerNotes(s *Study) []string {
	c := s.Server.Container
	if c == nil {
		return nil
	}
	var out []string
	given := func(names ...string) bool {
		return slices.ContainsFunc(containerFlags(c), func(f runFlag) bool { return slices.Contains(names, f.name) })
	}
	if !s.Simulated && !given("--gpus", "--device", "--runtime", "--privileged") {
		flag := "--gpus, all"
		if c.Runtime == "podman" {
			flag = "--device, nvidia.com/gpu=all"
		}
		out = append(out, "The container sees no GPU: server.container.args has none of --gpus, --device, --runtime; add ["+flag+"].")
	}
	if !s.Simulated && Ranks(sglang.Merge(s.Server.Flags, s.Baseline)) > 1 && !given("--ipc", "--shm-size") {
		out = append(out, "Several ranks share memory through /dev/shm, which is 64 MB in a container: add [--ipc, host] or [--shm-size, 32g] to server.container.args.")
	}
	if model := s.Server.Model; strings.HasPrefix(model, "/") && !s.Simulated && !mounted(c, model) {
		out = append(out, "The container may not see the model: no volume of server.container.args covers "+model+"; add [-v, \""+filepath.Dir(model)+":"+filepath.Dir(model)+":ro\"].")
	}
	return out
}

type runFlag struct{ name, value string }

func containerFlags(c *sglang.Container) []runFlag {
	var flags []runFlag
	for i := 0; i < len(c.Args); {
		name, value, n := runArg(c.Args[i:])
		flags = append(flags, runFlag{name, value})
		i += n
	}
	return flags
}

// mounted reports whether a volume of the container covers a path inside it.
func mounted(c *sglang.Container, file string) bool {
	under := func(dir string) bool {
		dir = strings.TrimSuffix(dir, "/")
		return dir != "" && (file == dir || strings.HasPrefix(file, dir+"/"))
	}
	for _, f := range containerFlags(c) {
		switch f.name {
		case "--volume":
			if parts := strings.Split(f.value, ":"); under(parts[min(1, len(parts)-1)]) {
				return true
			}
		case "--mount":
			for _, option := range strings.Split(f.value, ",") {
				key, value, _ := strings.Cut(option, "=")
				if slices.Contains([]string{"target", "dst", "destination"}, key) && under(value) {
					return true
				}
			}
		case "--volumes-from":
			return true
		}
	}
	return false
}

// containerText is a container in one line of check.
func containerText(c *sglang.Container) string {
	text := c.Runtime + " " + c.Image
	if len(c.Args) > 0 {
		text += " with " + sglang.Mask(strings.Join(maskedRunArgs(c.Args), " "))
	}
	if c.Memory > 0 {
		text += " (memory limit " + FormatSize(float64(c.Memory)) + ")"
	}
	return text
}

// maskedRunArgs hides the values of variables whose names say that they are secrets.
func maskedRunArgs(args []string) []string {
	out := slices.Clone(args)
	for i, w := range out {
		before, rest, inline := strings.Cut(w, "=")
		variable := strings.TrimPrefix(strings.TrimPrefix(before, "--env"), "-e")
		if before == "--env" {
			variable, _, inline = strings.Cut(rest, "=")
			before += "=" + variable
		}
		if inline && secretName(variable) {
			out[i] = before + "=***"
		}
	}
	return out
}

// ContainerLimit puts the memory limit of the study's container into the facts of its host, where both rules for host
// RAM and check see it.
func (s *Study) ContainerLimit(f HostFacts) HostFacts {
	if c := s.Server.Container; c != nil {
		f.ContainerLimit = c.Memory
	}
	return f
}
