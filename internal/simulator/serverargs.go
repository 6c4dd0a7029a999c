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
		case "cuda_graph_max_bs_decode", "disable_cuda_graph", "api_key":
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
	sizes := strings.Join(strings.Fields(fmt.Sprint(l.b.GraphSizes)), ", ")
	const rest = "'tc_compiler': 'eager', 'max_context_size': None, 'full_prefill_max_req': None, 'full_prefill_prefix_chunk_tokens': None, 'max_seq_len': None"
	return fmt.Sprintf("{'decode': {'backend': '%s', 'max_bs': %d, 'bs': %s, %s}, 'prefill': {'backend': 'disabled', 'max_bs': %d, 'bs': [], %s}}",
		backend, l.b.GraphMax, sizes, rest, min(8192, max(l.b.Chunk, 1)), rest)
}

// unlisted are options that are not attributes of the arguments.
func unlisted(key string) bool {
	return key == "help" || key == "config" || key == "monokernel_backend"
}

// serverArgs is the body of the server_args line: every attribute, as Python prints a dict.
func (l *launch) serverArgs() string {
	var b strings.Builder
	b.Grow(24 << 10)
	for i, f := range flags() {
		if unlisted(f.key) {
			continue
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('\'')
		b.WriteString(f.key)
		b.WriteString("': ")
		b.WriteString(l.resolved(f.key))
	}
	return b.String()
}

// infoJSON is the flattened arguments as /server_info shows them, without the closing brace.
func (l *launch) infoJSON() []byte {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range flags() {
		if unlisted(f.key) {
			continue
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", f.key, pyJSON(l.resolved(f.key)))
	}
	return []byte(b.String())
}
