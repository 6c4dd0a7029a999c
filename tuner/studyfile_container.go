package tuner

import (
	"path/filepath"
	"slices"
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
	args, rest := sglang.RunArgs(words)
	for _, a := range args {
		d.judgeRunArg(f.value.items[a.From], f.value.items[a.To-1], c, a)
	}
	if rest < len(words) {
		d.wrong(f.value.items[rest], "`server.container.args` holds %s, which is no flag and no flag's value: %s would take it for the image; the image stands under image:",
			quote(words[rest]), runtimeName(c))
	}
}

func runtimeName(c *sglang.Container) string {
	if c.Runtime == "" {
		return "the runtime"
	}
	return c.Runtime
}

// judgeRunArg refuses one argument, or takes from it what the study must know.
func (d *decoder) judgeRunArg(at, valueAt *node, c *sglang.Container, a sglang.RunArg) {
	switch a.Name {
	case "--env":
		if variable, _, given := strings.Cut(a.Value, "="); given && secretName(variable) {
			d.secrets = append(d.secrets, valueAt)
		}
	case "--memory":
		n, ok := sglang.RunBytes(a.Value)
		if !ok || n == 0 {
			d.wrong(valueAt, "`server.container.args` sets %s %s, which is no size; write a number with k, m or g behind it, like 400g", a.Name, quote(a.Value))
			return
		}
		c.Memory = n
	}
	if why := a.Refused(); why != "" {
		d.wrong(at, "`server.container.args` holds %s: %s; remove it", quote(strings.TrimSuffix(a.Name+" "+a.Value, " ")), why)
	}
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
	args, _ := sglang.RunArgs(c.Args)
	given := func(names ...string) bool {
		return slices.ContainsFunc(args, func(a sglang.RunArg) bool { return slices.Contains(names, a.Name) })
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
	if model := s.Server.Model; strings.HasPrefix(model, "/") && !s.Simulated && !mounted(args, model) {
		out = append(out, "The container may not see the model: no volume of server.container.args covers "+model+"; add [-v, \""+filepath.Dir(model)+":"+filepath.Dir(model)+":ro\"].")
	}
	return out
}

// mounted reports whether a volume among the arguments covers a path inside the container.
func mounted(args []sglang.RunArg, file string) bool {
	under := func(dir string) bool {
		dir = strings.TrimSuffix(dir, "/")
		return dir != "" && (file == dir || strings.HasPrefix(file, dir+"/"))
	}
	for _, a := range args {
		switch a.Name {
		case "--volume":
			if parts := strings.Split(a.Value, ":"); under(parts[min(1, len(parts)-1)]) {
				return true
			}
		case "--mount":
			for _, option := range strings.Split(a.Value, ",") {
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
