package simulator

import (
	"fmt"
	"slices"
	"strings"
)

// exposition is a page of metrics in Prometheus' text format, as Python's client prints it: labels sorted, every value a float.
type exposition struct {
	d     *dialect
	model string
	b     []byte
}

// label is one more label of a sample.
type label struct{ name, value string }

// scheduler is the labels of what a scheduler reports, tokenizer of what the main process does, by version.
func (x *exposition) scheduler() []label {
	l := []label{{"model_name", x.model}, {"engine_type", "unified"}}
	if x.d.release >= r049 {
		l = append(l, label{"tp_rank", "0"}, label{"pp_rank", "0"})
	}
	if x.d.release >= r0510 {
		l = append(l, label{"moe_ep_rank", "0"})
	}
	return l
}

func (x *exposition) tokenizer() []label {
	l := []label{{"model_name", x.model}}
	if x.d.release >= r0523 {
		l = append(l, label{"engine_type", "unified"})
	}
	return l
}

// family begins a metric. The name is SGLang's, without its prefix.
func (x *exposition) family(name, kind, help string) {
	x.b = fmt.Appendf(x.b, "# HELP sglang:%s %s\n# TYPE sglang:%s %s\n", name, help, name, kind)
}

// sample adds one value.
func (x *exposition) sample(name string, labels []label, value float64) {
	x.b = append(append(x.b, "sglang:"...), name...)
	labels = slices.Clone(labels)
	slices.SortFunc(labels, func(a, b label) int { return strings.Compare(a.name, b.name) })
	for i, l := range labels {
		c := byte(',')
		if i == 0 {
			c = '{'
		}
		x.b = append(append(append(x.b, c), l.name...), `="`...)
		x.b = append(append(x.b, labelEscapes.Replace(l.value)...), '"')
	}
	if len(labels) > 0 {
		x.b = append(x.b, '}')
	}
	x.b = append(append(append(x.b, ' '), pyFloat(value)...), '\n')
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// gauge is a metric of the scheduler with one value.
func (x *exposition) gauge(name, help string, value float64) {
	x.family(name, "gauge", help)
	x.sample(name, x.scheduler(), value)
}

// histogram adds the samples of one, nothing while nothing was observed.
func (x *exposition) histogram(name string, labels []label, h *histogram) {
	if h.n == 0 {
		return
	}
	x.sample(name+"_sum", labels, h.sum)
	n := 0
	for i, count := range h.counts {
		bound := "+Inf"
		if n += count; i < len(h.bounds) {
			bound = pyFloat(h.bounds[i])
		}
		x.sample(name+"_bucket", append(slices.Clone(labels), label{"le", bound}), float64(n))
	}
	x.sample(name+"_count", labels, float64(h.n))
}
