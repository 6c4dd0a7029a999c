package tuner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func (d *decoder) readWorkload(f field) {
	w := &d.study.Workload
	seen := d.keys(f.value, "workload", map[string]handler{
		"file": d.readWorkloadFile,
		"load": d.readLoad,
		"total": func(g field) {
			if v, ok := d.whole(g, "workload.total", 1, 1<<40); ok {
				w.Total = v
			}
		},
	})
	if !seen["file"] && f.value.kind == mapping {
		d.missing("`workload.file` is missing; add the trace or prompt file under workload:, like file: prompts.jsonl")
	}
}

func (d *decoder) readWorkloadFile(g field) {
	word, ok := d.word(g, "workload.file", "prompts.jsonl")
	if !ok {
		return
	}
	name := d.here(word)
	d.study.Workload.File = name
	if d.unseen {
		return
	}
	info, err := os.Stat(name)
	switch {
	case err != nil && os.IsNotExist(err):
		d.wrong(g.value, "`workload.file` %s does not exist; paths start at the study file's folder", quote(word))
	case err != nil:
		d.wrong(g.value, "`workload.file` %s cannot be read (%v); check its permissions", quote(word), cause(err))
	case info.IsDir():
		d.wrong(g.value, "`workload.file` %s is a folder; name a file in it", quote(word))
	case info.Size() == 0:
		d.wrong(g.value, "`workload.file` %s is empty; name a trace or prompt file with rows", quote(word))
	}
}

func (d *decoder) readLoad(f field) {
	w := &d.study.Workload
	notYet := func(g field) {
		d.at(g.line, g.col, "`workload.load.%s` is not in this version, which has concurrency; write load: {concurrency: [40, 80]}", g.name)
	}
	d.keys(f.value, "workload.load", map[string]handler{
		"concurrency": d.readConcurrency,
		"rate":        notYet,
		"as_recorded": notYet,
		"target": func(g field) {
			word, ok := d.word(g, "workload.load.target", "3%")
			if !ok {
				return
			}
			v, err := ParseFraction(word)
			switch {
			case err != nil:
				d.wrong(g.value, "workload.load.target: %v", err)
			case v == 0:
				d.wrong(g.value, "`workload.load.target` is 0, which no level reaches; write the interval that ends a level, like 3%%")
			default:
				w.Target = v
			}
		},
		"cap": func(g field) {
			if v, ok := d.positive(g, "workload.load.cap"); ok {
				w.Cap, d.loadCap = v, g.value
			}
		},
	})
}

func (d *decoder) readConcurrency(g field) {
	items := g.value.items
	if g.value.kind == scalar {
		items = []*node{g.value}
	} else if g.value.kind != list || len(items) == 0 {
		d.wrong(g.value, "`workload.load.concurrency` must be a list of client counts, not %s; write it like [40, 80]", found(g.value))
		return
	}
	var levels []int
	for _, item := range items {
		v, ok := d.whole(field{value: item}, "workload.load.concurrency", 1, 100_000)
		switch {
		case !ok:
			return
		case slices.Contains(levels, v):
			d.wrong(item, "`workload.load.concurrency` holds %d twice; keep one of them", v)
			return
		}
		levels = append(levels, v)
	}
	slices.Sort(levels)
	d.study.Workload.Concurrency = levels
}

func (d *decoder) readObjective(f field) {
	if w, ok := d.choice(f, "objective", "output_tok_s", "requests_s", "goodput", "concurrency"); ok {
		d.study.Objective.Metric, d.objective = w, f.value
	}
}

func (d *decoder) readSLO(f field) {
	slo := &d.study.Objective.SLO
	d.keys(f.value, "slo", map[string]handler{
		"ttft_p95": func(g field) { slo.TTFTP95, _ = d.positive(g, "slo.ttft_p95") },
		"tpot_p95": func(g field) { slo.TPOTP95, _ = d.positive(g, "slo.tpot_p95") },
		"e2e_p95":  func(g field) { slo.E2EP95, _ = d.positive(g, "slo.e2e_p95") },
	})
}

func (d *decoder) readQuality(f field) {
	if f.value.kind == mapping {
		d.wrong(f.value, "`quality` with a gate is not in this version; write quality: bf16-only")
		return
	}
	d.choice(f, "quality", QualityBF16)
}

func (d *decoder) readBudget(f field) {
	b := &d.study.Budget
	before := len(d.problems)
	d.keys(f.value, "budget", map[string]handler{
		"trials": func(g field) {
			if v, ok := d.whole(g, "budget.trials", 1, 100_000); ok {
				b.Trials = v
			}
		},
		"wall": func(g field) { b.Wall, _ = d.positive(g, "budget.wall") },
		"until": func(g field) {
			word, ok := d.word(g, "budget.until", `"07:00"`)
			if !ok {
				return
			}
			v, err := ParseClock(word)
			if err != nil {
				d.wrong(g.value, "budget.until: %v", err)
				return
			}
			b.Until = v
		},
	})
	if *b == (Budget{}) && len(d.problems) == before {
		d.wrong(f.value, "`budget` is empty; write trials, wall or until, like {wall: 9h}")
	}
}

func (d *decoder) readMeasure(f field) {
	m := &d.study.Measure
	d.keys(f.value, "measure", map[string]handler{
		"window": func(g field) {
			if v, ok := d.positive(g, "measure.window"); ok {
				m.Window = v
			}
		},
		"max": func(g field) {
			if v, ok := d.positive(g, "measure.max"); ok {
				m.Max, d.max = v, g.value
			}
		},
		"canary": func(g field) { m.Canary = d.orOff(g, "measure.canary", m.Canary) },
		"fill":   func(g field) { m.Fill = d.orOff(g, "measure.fill", m.Fill) },
	})
}

// orOff reads a duration that may be 0, also written as off.
func (d *decoder) orOff(g field, where string, old time.Duration) time.Duration {
	if g.value.kind == scalar && (g.value.text == "off" || g.value.text == "none" || g.value.value == false) {
		return 0
	}
	if v, ok := d.duration(g, where); ok {
		return v
	}
	return old
}

func (d *decoder) readConfirm(f field) {
	d.keys(f.value, "confirm", map[string]handler{"launches": func(g field) {
		if g.value.kind == scalar && g.value.text == "auto" {
			return
		}
		if _, number := g.value.value.(float64); !number {
			d.wrong(g.value, "`confirm.launches` cannot be %s; write auto or a whole number from 1 to 5", found(g.value))
			return
		}
		d.study.Confirm, _ = d.whole(g, "confirm.launches", 1, 5)
	}})
}

func (d *decoder) readSampler(f field) {
	w, ok := d.choice(f, "sampler", physicsName, "tpe", "random", "grid")
	if !ok {
		return
	}
	if w == "tpe" {
		d.study.note("Sampler tpe is goptuna's, which draws from a source of its own: the same seed and history may give another proposal.")
	}
	d.study.Sampler = w
}

func (d *decoder) readFinish(f field) {
	fin := &d.study.Finish
	d.keys(f.value, "finish", map[string]handler{
		"launch": func(g field) {
			if w, ok := d.choice(g, "finish.launch", "best", "baseline", "none"); ok {
				fin.Launch, d.launch = w, g.value
			}
		},
		"notify": d.readNotify,
	})
}

// readNotify reads a list of words (one program) or a list of {run: [...]} and {url: ...}.
func (d *decoder) readNotify(g field) {
	fin := &d.study.Finish
	if g.value.kind == list && len(g.value.items) == 0 {
		return
	}
	if g.value.kind != list || g.value.items[0].kind != mapping {
		if words, ok := d.words(g, "finish.notify", "[./notify.sh]"); ok {
			fin.Notify = []Notify{{Run: d.existing(g.value, words)}}
		}
		return
	}
	for _, item := range g.value.items {
		var n Notify
		before := len(d.problems)
		d.keys(item, "finish.notify", map[string]handler{
			"run": func(h field) {
				if words, ok := d.words(h, "finish.notify.run", "[./notify.sh]"); ok {
					n.Run = d.existing(h.value, words)
				}
			},
			"url": func(h field) {
				w, ok := d.word(h, "finish.notify.url", "https://example.org/hook")
				if ok && !strings.HasPrefix(w, "http://") && !strings.HasPrefix(w, "https://") {
					d.wrong(h.value, "`finish.notify.url` must start with http:// or https://; write the whole address")
				}
				n.URL = w
				d.secrets = append(d.secrets, h.value) // who knows a hook's address may post there
			},
		})
		if len(d.problems) == before && (n.URL == "") == (len(n.Run) == 0) {
			d.wrong(item, "each entry of `finish.notify` needs one of run and url; write {run: [./notify.sh]} or {url: https://...}")
		}
		fin.Notify = append(fin.Notify, n)
	}
}

// existing makes a program's path absolute and reports one that is not there: at the end of a
// night it would be too late.
func (d *decoder) existing(n *node, words []string) []string {
	shown := words[0]
	if strings.Contains(shown, "/") {
		words[0] = d.here(shown)
	}
	if !filepath.IsAbs(words[0]) || d.unseen {
		return words
	}
	if info, err := os.Stat(words[0]); err != nil || info.IsDir() {
		d.wrong(n, "`finish.notify` runs %s, which is not a file; paths start at the study file's folder", quote(shown))
	}
	return words
}
