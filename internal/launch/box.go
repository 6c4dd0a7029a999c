package launch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"sgtune/sglang"
)

// Box is the container of a study's servers, made anew for each trial (server.container).
type Box struct {
	Runtime string   // docker or podman
	Image   string   // fillIn when only running the source would tell
	Args    []string // what stays of the options of run
	Left    []Entry  // options that are left out, each with its reason; Value is its words
}

// fillIn stands for a value that a person must give.
const fillIn = "FILL-IN"

// repeatable reports whether a study can have the container made again for each trial.
func (c *Container) repeatable() bool {
	return c != nil && c.Runs && c.Image != "" && (c.Runtime == "docker" || c.Runtime == "podman")
}

// sortBox sorts the options of docker run and podman run. It comes after sortEnv: variables are handed over by name.
func (p *Plan) sortBox() {
	c := p.Launch.Container
	if !c.repeatable() {
		return
	}
	b := &Box{Runtime: c.Runtime, Image: c.Image}
	p.Box = b
	if unknown(b.Image) || strings.HasPrefix(b.Image, "-") || strings.ContainsFunc(b.Image, notInAName) {
		p.warn("The image is %s in the source, which is known only when it runs: write it into server.container.image.", shorten(c.Image, 80))
		b.Image = fillIn
	}
	args, _ := sglang.RunArgs(c.Args)
	for _, a := range args {
		p.sortRunArg(c, a)
	}
	for _, file := range c.EnvFiles {
		b.Args = append(b.Args, "--env-file", file)
	}
	for _, e := range p.LeftEnv {
		if e.Value == reference(e.Name) && !strings.HasPrefix(e.Name, "SGTUNE_") {
			b.Args = append(b.Args, "-e", e.Name)
		}
	}
	if c.PlainEntry {
		b.Args = append(b.Args, "--entrypoint=")
	}
	var left []string
	for _, e := range b.Left {
		left = append(left, e.Name)
	}
	if len(left) > 0 {
		p.warn("Left out of %s run: %s. Beside server.container stands why.", b.Runtime, strings.Join(left, ", "))
	}
}

// sortRunArg keeps one option or leaves it out.
func (p *Plan) sortRunArg(c *Container, a sglang.RunArg) {
	typed := strings.Join(a.Words, " ")
	leave := func(why string) { p.Box.Left = append(p.Box.Left, Entry{a.Name, sglang.Mask(typed), why}) }
	switch why := a.Refused(); {
	case a.Name == "--env" && why != "":
		leave(why)
		variable, _, _ := strings.Cut(a.Value, "=")
		other := func(e Entry) bool { return e.Name == variable }
		p.Env, p.LeftEnv = slices.DeleteFunc(p.Env, other), slices.DeleteFunc(p.LeftEnv, other)
	case a.Name == "--env", a.Name == "--env-file", a.Name == "--entrypoint": // in env, EnvFiles and PlainEntry
	case why != "":
		leave(why)
	case unknown(typed):
		leave("FILL IN: known only when the source runs")
	case sglang.Mask(typed) != typed:
		leave("it holds a secret, which is not written here")
	case a.Name == "--memory" && !isSize(a.Value):
		leave("it is no size")
	case a.Name == "--volume":
		p.Box.Args = append(p.Box.Args, slices.Concat(a.Words[:len(a.Words)-1], []string{c.absoluteVolume(a.Words[len(a.Words)-1], a.Value)})...)
	default:
		p.Box.Args = append(p.Box.Args, a.Words...)
	}
}

func isSize(text string) bool {
	n, ok := sglang.RunBytes(text)
	return ok && n > 0
}

// absoluteVolume makes the folder of a volume whole where it starts at the folder that the runtime is called in: sgtune
// is called elsewhere. word ends with the volume.
func (c *Container) absoluteVolume(word, volume string) string {
	from, rest, two := strings.Cut(volume, ":")
	if !two || from != "." && from != ".." && !strings.HasPrefix(from, "./") && !strings.HasPrefix(from, "../") || !filepath.IsAbs(c.Dir) || unknown(c.Dir) {
		return word
	}
	return strings.TrimSuffix(word, volume) + filepath.Join(c.Dir, from) + ":" + rest
}

// container writes the container of the servers.
func (p *Plan) container(f *studyFile) {
	f.says("  ", "Each trial has a container of its own, and this command runs in it.")
	f.line("  container:")
	f.line("    runtime: %s", p.Box.Runtime)
	comment := "must be on the machine: trials fetch nothing"
	if p.Box.Image == fillIn {
		comment = "FILL IN: the name of the image"
	}
	f.beside("    image: "+word(p.Box.Image), comment)
	if len(p.Box.Args) > 0 {
		f.line("    args: %s", oneLine(flow(p.Box.Args)))
	}
	var said []string
	for _, e := range p.Box.Left { // those with the same reason together
		if slices.Contains(said, e.Comment) {
			continue
		}
		said = append(said, e.Comment)
		text := ""
		for _, other := range p.Box.Left {
			if other.Comment == e.Comment {
				text += fmt.Sprint(other.Value, " ")
			}
		}
		f.says("    ", text+"is "+reason(e))
	}
}

// serves is the name of the container that serves today and can be started again, "" when there is none.
func (p *Plan) serves() string {
	if p.Box == nil {
		return ""
	}
	name := ""
	for _, e := range p.Box.Left {
		text, _ := e.Value.(string)
		switch args, _ := sglang.RunArgs(strings.Fields(text)); {
		case e.Name == "--rm":
			return ""
		case e.Name == "--name" && len(args) == 1:
			name = args[0].Value
		}
	}
	return name
}

// notInAName reports whether no name of an image has the character.
func notInAName(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
