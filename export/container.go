package export

import (
	"slices"
	"strings"
)

// launch is the whole command of a profile: the server's own, or the runtime's that runs it in its container.
func (p Profile) launch() []word {
	if p.Server.Container == nil {
		return p.words()
	}
	return append(append(p.runWords(), word{text: p.Server.Container.Image}), p.words()...)
}

// runWords are the words of the runtime up to the image. Variables are named only, and have their values from the
// environment of the command.
func (p Profile) runWords() []word {
	c := p.Server.Container
	argv := []string{c.Runtime, "run", "--rm"}
	if !slices.ContainsFunc(c.Args, func(w string) bool {
		return w == "--network" || w == "--net" || strings.HasPrefix(w, "--network=") || strings.HasPrefix(w, "--net=")
	}) {
		argv = append(argv, "--network", "host") // as it was measured
	}
	argv = append(argv, c.Args...)
	for _, v := range p.environment() {
		argv = append(argv, "-e", v.name)
	}
	out := make([]word, len(argv))
	for i, text := range argv {
		out[i] = word{text: text}
	}
	return out
}

// containerLine says where a profile runs, "" for one without a container.
func (p Profile) containerLine() string {
	if c := p.Server.Container; c != nil {
		return "measured in a " + c.Runtime + " container of the image " + c.Image
	}
	return ""
}
