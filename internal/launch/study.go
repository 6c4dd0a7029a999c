package launch

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"sgtune/sglang"
)

// WriteStudy writes the plan as a commented study file. Secrets are references, never values.
func (p *Plan) WriteStudy(w io.Writer) error {
	f := &studyFile{}
	p.head(f)
	f.line("study: %s", word(p.Study))
	p.server(f)
	p.service(f)
	p.host(f)
	p.space(f)
	p.load(f)
	p.rest(f)
	_, err := io.WriteString(w, p.Hide(f.String()))
	return err
}

// studyFile is a study file in the making.
type studyFile struct{ bytes.Buffer }

func (f *studyFile) line(format string, args ...any) {
	f.WriteString(fmt.Sprintf(format, args...) + "\n")
}

// beside writes a line with a comment behind it, or above it where the two are too long together.
func (f *studyFile) beside(line, comment string) {
	text := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(text)]
	switch {
	case comment == "":
		f.line("%s", line)
	case max(len(line), beside)+4+len(comment) > wide:
		f.says(indent, comment)
		f.line("%s", line)
	default:
		f.line("%-*s  # %s", beside, line, oneLine(comment))
	}
}

const (
	beside = 42  // column of comments behind a line
	wide   = 112 // longest line with a comment
)

// says writes a comment, wrapped.
func (f *studyFile) says(indent, text string) {
	words := strings.Fields(oneLine(text))
	line := indent + "#"
	for _, w := range words {
		if len(line)+1+len(w) > wide && line != indent+"#" && line != indent+"#  " {
			f.line("%s", line)
			line = indent + "#  "
		}
		line += " " + w
	}
	f.line("%s", line)
}

func (p *Plan) head(f *studyFile) {
	l := p.Launch
	switch {
	case l.Kind == "":
		f.says("", "A study to fill in: every line that says FILL IN needs your own value.")
	case p.From == "":
		f.says("", fmt.Sprintf("Written by sgtune init from a %s. Its baseline is what runs today.", l.Kind))
	default:
		from := p.From
		if l.Line > 0 {
			from += fmt.Sprintf(", line %d", l.Line)
		}
		f.says("", fmt.Sprintf("Written by sgtune init from a %s: %s. Its baseline is what runs today.", l.Kind, sglang.Mask(from)))
	}
	version := fmt.Sprintf("Names and defaults of flags: SGLang %s", p.Version)
	if p.Assumed {
		version += " (assumed, the newest known)"
	}
	f.says("", version+".")
	f.line("#")
	f.line("#   sgtune check FILE     what will happen, and what is still missing")
	f.line("#   sgtune tune FILE      the study")
	if len(p.Warnings) > 0 {
		f.line("#")
		f.line("# Worth knowing:")
		for _, w := range p.Warnings {
			f.says("", "- "+sglang.Mask(w))
		}
	}
	f.line("")
}

func (p *Plan) server(f *studyFile) {
	l := p.Launch
	f.line("")
	f.line("server:")
	if p.Box != nil {
		p.container(f)
	} else if l.Container != nil {
		f.says("  ", "SGLang runs in a container today. Run sgtune inside it, with this plain command:")
	}
	f.line("  command: %s", flow(l.Command))
	if c := l.Container; c != nil && p.Box == nil {
		p.around(f, c)
	}
	p.model(f)
	if len(p.Flags)+len(p.Left)+len(p.Defaults) > 0 {
		f.line("  # The same in every trial, by SGLang's own names.")
	}
	if len(p.Flags) > 0 {
		f.line("  flags:")
		for _, e := range p.Flags {
			f.beside("    "+pair(e), e.Comment)
		}
	}
	if len(p.Flags) == 0 && len(p.Left) > 0 {
		f.line("  # flags:")
	}
	for _, e := range p.Left {
		f.beside("    # "+pair(e), reason(e))
	}
	if len(p.Defaults) > 0 {
		f.says("    ", "Left out, the same as SGLang's defaults: "+sglang.Mask(strings.Join(p.Defaults, ", ")))
	}
	p.environment(f)
	if len(p.Baseline) > 0 {
		f.line("  baseline:  # what runs today, of the knobs searched below")
		for _, e := range p.Baseline {
			f.beside("    "+pair(e), e.Comment)
		}
	} else {
		f.line("  # baseline:  none of the knobs below is set today: the server chooses")
	}
	f.beside("  ready_timeout: 25m", "a start may take this long; one without progress ends earlier")
}

// reason says why an entry is left out, or that it is to be filled in.
func reason(e Entry) string {
	if strings.HasPrefix(e.Comment, "FILL IN") {
		return e.Comment
	}
	return "left out: " + e.Comment
}

func (p *Plan) model(f *studyFile) {
	comment := ""
	if unknown(p.Model) || strings.Contains(p.Model, "FILL-IN") {
		comment = "FILL IN: path or name of the model"
	}
	f.beside("  model: "+word(p.Model), comment)
}

// around names what runs around SGLang, commented out: it is nothing that sgtune can make for each trial.
func (p *Plan) around(f *studyFile, c *Container) {
	f.line("  # container:")
	f.line("  #   runtime: %s", word(c.Runtime))
	if c.Image != "" {
		f.line("  #   image: %s", word(c.Image))
	}
	if args := shown(c.Args); len(args) > 0 {
		f.line("  #   args: %s", oneLine(flow(args)))
	}
}

// shown drops environment options (they are in env) and masks the rest.
func shown(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch name, _, inline := strings.Cut(args[i], "="); {
		case (name == "-e" || name == "--env") && inline, strings.HasPrefix(args[i], "-e") && len(args[i]) > 2:
		case name == "-e" || name == "--env":
			i++
		default:
			out = append(out, sglang.Mask(args[i]))
		}
	}
	return out
}

func (p *Plan) environment(f *studyFile) {
	if len(p.Env) > 0 {
		f.line("  env:")
		for _, e := range p.Env {
			f.line("    %s: %s", e.Name, quoted(fmt.Sprint(e.Value)))
		}
	} else if len(p.LeftEnv) > 0 {
		f.line("  # env:")
	}
	for _, e := range p.LeftEnv {
		f.beside(fmt.Sprintf("    # %s: %s", e.Name, oneLine(fmt.Sprint(e.Value))), e.Comment)
	}
}

// service proposes how the GPUs are freed and what runs afterwards.
func (p *Plan) service(f *studyFile) {
	unit := "sglang"
	if p.Launch.Kind == KindUnit && p.Launch.Name != "" && p.Launch.Name != "." {
		unit = p.Launch.Name
	}
	f.line("")
	f.line("# How the GPUs are freed before the study, and how your service comes back however it ends.")
	control := "systemctl"
	if name := p.serves(); name != "" {
		control, unit = p.Box.Runtime, name
	}
	f.line("# before: [%s, stop, %s]", control, word(unit))
	f.line("# after: [%s, start, %s]", control, word(unit))
	f.line("finish:")
	f.beside("  launch: none", "best: start the winner when it is done; not together with after")
	f.beside("  # notify: [./notify.sh]", "gets the result")
}

func (p *Plan) host(f *studyFile) {
	f.line("")
	f.line("host:")
	f.beside("  kind: local", "sgtune runs on the GPU machine itself")
	f.beside("  # ram_budget: 400GB", "what host KV pools may take in all; or 50GB/rank")
}

func (p *Plan) space(f *studyFile) {
	f.line("")
	f.line("# What the study searches, with SGLang's own numbers. Fewer knobs are searched better in one night.")
	f.line("space:")
	for _, d := range p.Space {
		prefix := "  "
		if d.Off {
			prefix = "  # "
		}
		if d.Values != nil {
			values := make([]string, len(d.Values))
			for i, v := range d.Values {
				values[i] = sglang.FormatValue(v)
			}
			f.beside(fmt.Sprintf("%s%s: [%s]", prefix, d.Name, strings.Join(values, ", ")), d.Comment)
			continue
		}
		f.beside(fmt.Sprintf("%s%s: {min: %s, max: %s, step: %s}", prefix, d.Name,
			sglang.FormatValue(d.Min), sglang.FormatValue(d.Max), sglang.FormatValue(d.Step)), d.Comment)
	}
	f.line("  # env.NCCL_ALGO: [Ring, Tree]             # an environment variable is a knob like any other")
}

func (p *Plan) load(f *studyFile) {
	f.line("")
	f.line("workload:")
	if p.Workload == "" {
		f.line("  # FILL IN: your own requests, one JSON object a line with prompt and output_tokens, or a recorded trace.")
		f.line("  # The format is detected. A study is only as good as the requests it replays.")
		f.line("  file: FILL-IN.jsonl")
	} else {
		f.line("  file: %s", word(p.Workload))
	}
	f.line("  load:")
	levels := []float64{16, 32, 64, 128}
	if now, ok := p.config().Float("max-running-requests"); ok && now >= 1 {
		levels = []float64{max(1, float64(int(now/2))), now, 2 * now}
	}
	words := make([]string, 0, len(levels))
	for _, v := range numbers(levels...) {
		words = append(words, sglang.FormatValue(v))
	}
	f.beside(fmt.Sprintf("    concurrency: [%s]", strings.Join(words, ", ")), "clients that each wait for their answer")
	f.beside("  # total: 88000", "requests of the whole job: results then say hours")
}

func (p *Plan) rest(f *studyFile) {
	f.line("")
	f.beside("objective: output_tok_s", "or requests_s, goodput, concurrency (these two need slo)")
	f.line("# slo: {ttft_p95: 30s, tpot_p95: 200ms}")
	f.beside("quality: bf16-only", "settings that may change answers stay out")
	f.line("")
	f.beside("budget:", "whichever comes first")
	f.line("  wall: 9h")
	f.beside("  # until: \"07:00\"", "the host's clock; the service is back by then")
	f.line("  trials: 30")
}
