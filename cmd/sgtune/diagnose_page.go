package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"sgtune/sglang"
	"sgtune/trial"
)

// page prints a verdict for a person: what happened first, then the proof, what to change and why, and the
// figures. It is at most 80 columns wide.
type page struct {
	out     io.Writer
	colour  bool
	width   int
	log     []string      // as the command was given them
	context trial.Context // what is known beside the log
	err     error         // of the first write that failed
}

const pageWidth = 80

func newPage(out io.Writer) *page {
	p := &page{out: out, width: pageWidth}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return p
	}
	p.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w >= 40 {
		p.width = min(w, pageWidth)
	}
	return p
}

// verdict prints a verdict and says with which exit code the program ends.
func (p *page) verdict(d *diagnosis, v trial.Verdict, log *source, asJSON bool) error {
	if asJSON {
		text, err := v.JSON()
		if err != nil {
			return err
		}
		_, p.err = p.out.Write(text)
	} else {
		p.print(d, v, log)
	}
	switch {
	case p.err != nil:
		return fmt.Errorf("print the verdict: %w", p.err)
	case v.Outcome == trial.Unknown:
		return failf(exitFailed, "")
	}
	return nil
}

func (p *page) print(d *diagnosis, v trial.Verdict, log *source) {
	for _, line := range wrap(printable(sentence(v.Text)), p.width) {
		p.line(p.style("1;"+tone(v), line))
	}
	p.line("")
	p.row("verdict", fmt.Sprintf("%s / %s / %s", v.Outcome, v.Phase, v.Cause))
	p.row("to blame", blame(v))
	p.evidence(d, v, log)
	about := trial.Explain(v.Outcome, v.Cause)
	p.head("What it means")
	p.text(about.Meaning)
	if v.Outcome == trial.Unknown {
		p.missing()
	}
	p.advice(v, about)
	p.findings(v)
	p.numbers(v)
}

// blame says in words whether the configuration is at fault.
func blame(v trial.Verdict) string {
	switch {
	case v.Outcome == trial.OK:
		return "nothing: the result counts for this configuration"
	case v.Outcome == trial.Unknown:
		return "not known"
	case v.Blames == trial.BlameYes:
		return "the configuration: change it, the same one would end like this again"
	case v.Blames == trial.BlamePartly:
		return "perhaps the configuration: run the same one once more to see"
	}
	return "not the configuration: it can run again as it is"
}

// advice lists what to change, best first, and why.
func (p *page) advice(v trial.Verdict, about trial.Entry) {
	if len(v.Advice) == 0 && (about.Remedy == "" || v.Outcome == trial.Unknown) {
		return
	}
	p.head("What to do")
	for i, code := range v.Advice {
		mark := "  - "
		if len(v.Advice) > 1 {
			mark = fmt.Sprintf("  %d. ", i+1)
		}
		p.hanging(mark, trial.AdviceText(code)+current(code, v))
	}
	if about.Remedy != "" && v.Outcome != trial.Unknown {
		p.text(about.Remedy)
	}
}

// current is the present value of what an advice changes, where the log says it.
func current(code string, v trial.Verdict) string {
	name, known := map[string]string{
		"raise_mem_fraction": "mem_fraction_static", "lower_mem_fraction": "mem_fraction_static",
		"lower_chunked_prefill": "chunked_prefill_size", "lower_max_running": "max_running_requests",
		"lower_hicache_size": "host_request_gb_per_rank", "raise_hicache_size": "host_request_gb_per_rank",
	}[code]
	value, there := v.Numbers[name]
	if !known || !there {
		return ""
	}
	return fmt.Sprintf(" Now: %s.", figure(value))
}

func (p *page) findings(v trial.Verdict) {
	if len(v.Findings) == 0 {
		return
	}
	p.head("Also noticed")
	for _, f := range v.Findings {
		text := f.Text
		if text == "" {
			text = strings.ReplaceAll(f.Name, "_", " ")
		}
		p.hanging("  - ", text)
	}
}

// missing says what would decide an unknown end.
func (p *page) missing() {
	p.head("What would decide it")
	var keys []string
	ask := func(known bool, key, value, question string) {
		if !known {
			keys = append(keys, fmt.Sprintf("%q: %s", key, value))
			p.hanging(fmt.Sprintf("  %-18s", key), question)
		}
	}
	c := p.context
	ask(c.Alive != nil, "alive", "false", "does the process still run? true or false")
	ask(c.ExitCode != nil, "exit_code", "-9", "its exit status; negative for a signal (a shell's 137 is -9)")
	ask(c.KernelOOMKills != nil, "kernel_oom_kills", "1", "how often the kernel killed for want of memory meanwhile: dmesg -T | grep -i 'killed process'")
	ask(c.CgroupOOMKills != nil, "cgroup_oom_kills", "0", "the same for its container or Slurm job: oom_kill in the cgroup's memory.events")
	ask(c.LogSilentS != nil, "log_silent_s", "600", "for how many seconds the log has not grown")
	if len(keys) == 0 {
		p.text("Everything that could be asked is known. Look at the last lines of the log and at the host's own log (dmesg, journalctl).")
		return
	}
	name := "LOG"
	if len(p.log) > 0 && p.log[0] != stdinName {
		words := make([]string, len(p.log))
		for i, w := range p.log {
			words[i] = shellWord(printable(w))
		}
		name = strings.Join(words, " ")
	}
	p.text("Write what you know into a file, with your own values, and ask again:")
	p.line("    echo '{" + strings.Join(keys[:min(3, len(keys))], ", ") + "}' > context.json")
	p.line("    sgtune diagnose " + name + " --context context.json")
}

// redOutcomes are outcomes that ended a server or disqualify it; they are shown in red.
var redOutcomes = []trial.Outcome{trial.GPUOOM, trial.HostOOM, trial.ConfigRejected, trial.Crashed, trial.Stuck, trial.QualityRejected, trial.DirtyHost}

// tone is the colour of a verdict: green for a good one, yellow for what is nobody's fault, red else.
func tone(v trial.Verdict) string {
	switch {
	case v.Outcome == trial.OK:
		return "32"
	case slices.Contains(redOutcomes, v.Outcome):
		return "31"
	}
	return "33"
}

// style colours a line, on a terminal that wants it.
func (p *page) style(code, text string) string {
	if !p.colour || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *page) head(title string) {
	p.line("")
	p.line(p.style("1", title))
}

func (p *page) row(name, value string) { p.hanging(fmt.Sprintf("  %-10s", name), value) }

func (p *page) line(text string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, text)
	}
}

// text prints a paragraph.
func (p *page) text(text string) { p.hanging("  ", text) }

// hanging prints a paragraph whose first line begins with mark and whose others stand under it.
func (p *page) hanging(mark, text string) {
	width := utf8.RuneCountInString(mark)
	for _, line := range wrap(printable(text), p.width-width) {
		p.line(mark + line)
		mark = strings.Repeat(" ", width)
	}
}

// wrap breaks a text between words into lines of at most room characters; a longer word stays whole.
func wrap(text string, room int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if used > 0 && used+1+n > room {
			lines = append(lines, line)
			line, used = "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	return append(lines, line)
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(sglang.Mask(text))
	if text == "" {
		return "There is no verdict."
	}
	if c := text[0]; c >= 'a' && c <= 'z' && !strings.HasPrefix(text, "sgtune") {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return text
}
