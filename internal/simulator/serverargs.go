package simulator

import (
	"fmt"
	"strconv"
	"strings"
)

// resolved returns an attribute as SGLang holds it after its automatic choices.
func (l *launch) resolved(key string) string {
	if v, ok := l.args.given[key]; ok {
		switch key {
		case "cuda_graph_max_bs_decode", "disable_cuda_graph":
			if l.d.release < r0523 { // later versions fold these into cuda_graph_config
				return v
			}
		case "api_key":
			if l.d.release < r0523 { // printed as it is
				return v
			}
		default:
			return v
		}
	}
	switch key {
	case "tokenizer_path", "served_model_name":
		return pyString(l.s.Model)
	case "context_length":
		return strconv.Itoa(l.b.contextLen)
	case "mem_fraction_static":
		return pyFloat(l.b.Fraction)
	case "chunked_prefill_size":
		return strconv.Itoa(l.b.Chunk)
	case "random_seed":
		return strconv.FormatUint(mix(l.s.Sim.Seed)%(1<<30), 10)
	case "hicache_ratio":
		return pyFloat(l.s.HicacheRatio)
	case "cuda_graph_config":
		return l.graphConfig()
	case "cuda_graph_max_bs":
		if len(l.b.GraphSizes) > 0 {
			return strconv.Itoa(l.b.GraphMax)
		}
	case "cuda_graph_bs":
		if len(l.b.GraphSizes) > 0 {
			return listText(l.b.GraphSizes)
		}
	case "device":
		return "'cuda'"
	case "page_size":
		return strconv.Itoa(l.s.PageSize)
	case "api_key":
		if l.s.APIKey != "" {
			return "'<redacted>'"
		}
	}
	return l.args.Python(key)
}

func (l *launch) graphConfig() string {
	backend := "full"
	if len(l.b.GraphSizes) == 0 {
		backend = "disabled"
	}
	sizes := listText(l.b.GraphSizes)
	const rest = "'tc_compiler': 'eager', 'max_context_size': None, 'full_prefill_max_req': None, 'full_prefill_prefix_chunk_tokens': None, 'max_seq_len': None"
	return fmt.Sprintf("{'decode': {'backend': '%s', 'max_bs': %d, 'bs': %s, %s}, 'prefill': {'backend': 'disabled', 'max_bs': %d, 'bs': [], %s}}",
		backend, l.b.GraphMax, sizes, rest, min(8192, max(l.b.Chunk, 1)), rest)
}

// listText prints numbers as Python prints a list.
func listText(numbers []int) string { return strings.Join(strings.Fields(fmt.Sprint(numbers)), ", ") }

// serverArgs is the server_args line: every attribute, as Python prints a dict (0.5.20 on) or a dataclass.
func (l *launch) serverArgs() string {
	open, quote, is, end := "ServerArgs(", "", "=", ")"
	if l.d.release >= r0523 {
		open, quote, is, end = "{", "'", ": ", "}"
	}
	var b strings.Builder
	b.Grow(24 << 10)
	b.WriteString("server_args=" + open)
	first := true
	for _, f := range l.d.flags().rows {
		if f.unlisted {
			continue
		}
		if !first {
			b.WriteString(", ")
		}
		first = false
		b.WriteString(quote + f.key + quote + is)
		b.WriteString(l.resolved(f.key))
	}
	return b.String() + end
}

// infoJSON is the flattened arguments as /server_info shows them, without the closing brace.
func (l *launch) infoJSON() []byte {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range l.d.flags().rows {
		if f.unlisted {
			continue
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", f.key, pyJSON(l.resolved(f.key)))
	}
	return []byte(b.String())
}
