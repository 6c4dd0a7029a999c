package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sgtune/sglang"
	"sgtune/trial"
)

// label is how a figure of a verdict is called and measured in plain words.
type label struct{ name, text, unit string }

// labels in the order they are shown: what belongs to the cause first, then the start, then serving.
var labels = []label{
	{"oom_tried_mib", "allocation that failed", "MiB"},
	{"oom_gpu_free_mib", "GPU memory free just then", "MiB"},
	{"oom_gpu_total_gib", "GPU memory in all", "GiB"},
	{"host_request_gb_per_rank", "host pool wanted a rank", "GB"},
	{"host_request_gb_total", "host pools of all ranks", "GB"},
	{"host_free_gb", "host memory free, as printed", "GB"},
	{"failing_ranks", "ranks that failed first", ""},
	{"child_exit_code", "exit code of the process that died", ""},
	{"rejected_flags", "flags that were refused", ""},
	{"port", "port", ""},
	{"min_gpu_free_gb", "free on the fullest GPU", "GiB"},
	{"local_gpu_free_gb", "free on another GPU", "GiB"},
	{"load_done", "weight files read", "files"},
	{"load_total", "weight files in all", "files"},
	{"load_s_per_shard", "time a file takes", "s"},
	{"load_eta_s", "time left to load, as printed", "s"},
	{"watchdog_timeout_s", "watchdog's limit", "s"},
	{"nccl_timeout_ms", "limit of a collective operation", "ms"},
	{"health_200_count", "health checks answered 200", ""},
	{"health_503_count", "health checks answered 503", ""},
	{"health_timeout_s", "limit of a health check", "s"},
	{"quality_baseline", "quality of the baseline", ""},
	{"quality_measured", "quality measured", ""},
	{"retract_events", "times the KV pool overflowed", ""},
	{"retracted_reqs_total", "requests computed again", ""},
	{"mem_fraction_static", "mem-fraction-static", ""},
	{"tp_size", "tp-size", ""},
	{"avail_before_load_gb", "GPU memory free before loading", "GiB"},
	{"weights_gb", "weights on each GPU", "GiB"},
	{"avail_after_load_gb", "GPU memory free after loading", "GiB"},
	{"kv_cache_gb", "KV pool on each GPU", "GiB"},
	{"graph_mem_gb", "CUDA graphs", "GiB"},
	{"available_gpu_mem_gb", "GPU memory left for the work", "GiB"},
	{"max_total_num_tokens", "KV pool", "tokens"},
	{"context_len", "longest request allowed", "tokens"},
	{"requested_max_running_requests", "requests at once, asked for", ""},
	{"max_running_requests", "requests at once, granted", ""},
	{"max_running_seen", "requests at once, seen", ""},
	{"peak_gen_tok_s", "best speed seen", "tok/s"},
	{"last_gen_tok_s", "last speed seen", "tok/s"},
}

// numbers prints the figures that have a name in words; --json has all of them.
func (p *page) numbers(v trial.Verdict) {
	all := v.AllNumbers()
	if done, of := all["load_done"], all["load_total"]; done == of { // loading is over: its pace is no news
		for _, name := range []string{"load_done", "load_total", "load_s_per_shard", "load_eta_s"} {
			delete(all, name)
		}
	}
	headed := false
	for _, l := range labels {
		value, there := all[l.name]
		if !there {
			continue
		}
		if !headed {
			p.head("Figures, as the log has them")
			headed = true
		}
		p.line(strings.TrimRight(fmt.Sprintf("  %-36s %12s %s", l.text, amount(value), l.unit), " "))
	}
}

// amount is one figure, or a list of them.
func amount(value any) string {
	switch value := value.(type) {
	case float64:
		return figure(value)
	case []int:
		words := make([]string, len(value))
		for i, n := range value {
			words[i] = strconv.Itoa(n)
		}
		return strings.Join(words, ", ")
	case []string:
		return printable(sglang.Mask(strings.Join(value, ", ")))
	}
	return fmt.Sprint(value)
}

// figure has at most three decimals, and commas between thousands.
func figure(v float64) string {
	text := strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
	whole, rest, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if rest != "" {
		rest = "." + rest
	}
	return sign + whole + rest
}

const (
	around    = 2        // lines shown before and after the evidence
	backwards = 16 << 10 // bytes read before it to find them
	alsoShown = 2
)

// evidence quotes the line that proves the verdict, with the lines around it where the log is a file that
// can be read again, and names others that prove it.
func (p *page) evidence(d *diagnosis, v trial.Verdict, log *source) {
	if v.Line <= 0 {
		return
	}
	p.head("Evidence")
	if !p.surroundings(d, v, log) {
		p.quote(v.Line, v.Evidence, true)
	}
	shown := 0
	for _, line := range v.Also {
		if e, ok := d.at(line); ok && line != v.Line && shown < alsoShown {
			p.quote(line, e.Text, true)
			shown++
		}
	}
	if more := len(v.Also) - shown; more > 0 {
		p.line("    " + p.style("2", "and "+count(more, "more line")+" to the same effect"))
	}
}

// surroundings shows the evidence as it stands in the file. It reports false when the file cannot be read
// again, or holds something else there by now.
func (p *page) surroundings(d *diagnosis, v trial.Verdict, log *source) bool {
	e, known := d.at(v.Line)
	f := log.plainFile()
	if !known || f == nil {
		return false
	}
	start := max(0, e.Offset-backwards)
	buf := make([]byte, e.Offset-start+backwards)
	n, err := f.ReadAt(buf, start)
	if n <= int(e.Offset-start) || err != nil && n == 0 {
		return false
	}
	before := textLines(buf[:e.Offset-start])
	after := textLines(buf[e.Offset-start : n])
	if start > 0 && len(before) > 0 {
		before = before[1:] // begins in the middle
	}
	before = before[max(0, len(before)-around):]
	after = after[:min(len(after), 1+around)]
	for i, text := range slices.Concat(before, after) {
		number := v.Line - len(before) + i
		if number == v.Line {
			text = v.Evidence
		}
		p.quote(number, text, number == v.Line)
	}
	return true
}

// colourCodes are what a program sends a terminal to change colours or move.
var colourCodes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// textLines splits bytes of a log into lines that can be shown: masked, without what steers a terminal.
func textLines(raw []byte) []string {
	text := strings.TrimSuffix(string(raw), "\n")
	if len(raw) == 0 {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:] // the last step of a progress bar
		lines[i] = sglang.Mask(strings.ToValidUTF8(colourCodes.ReplaceAllString(line, ""), "\uFFFD"))
	}
	return lines
}

// quote prints one line of the log, cut to the page; the evidence is wrapped, not cut.
func (p *page) quote(number int, text string, proof bool) {
	text = strings.TrimRight(printable(text), " ")
	mark := fmt.Sprintf("  %7d  ", number)
	if !proof {
		p.line(p.style("2", strings.TrimRight(mark+cut(text, p.width-utf8.RuneCountInString(mark)), " ")))
		return
	}
	const kept = 390 // of an event's line: one near its limit of 400 bytes goes on in the log
	if len(text) > kept {
		text += "…"
	}
	mark = fmt.Sprintf("> %7d  ", number)
	for _, line := range wrap(text, p.width-len(mark)) {
		for len(line) > 0 {
			piece := cutAt(line, p.width-utf8.RuneCountInString(mark))
			line = line[len(piece):]
			p.line(mark + p.style("1", piece))
			mark = strings.Repeat(" ", len(mark))
		}
	}
}

// cutAt is the beginning of a text, at most room characters.
func cutAt(text string, room int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), room)])
}
