package sglang

import (
	"strings"
)

// serverArgKeys are the resolved arguments worth keeping from the server_args line. Numbers go to
// Values under the name on the right, everything else to Words under SGLang's own name.
var serverArgKeys = []struct{ key, number string }{
	{"model_path", ""},
	{"mem_fraction_static", "mem_fraction_static"},
	{"tp_size", "tp_size"},
	{"dp_size", "dp_size"},
	{"pp_size", "pp_size"},
	{"nnodes", "nnodes"},
	{"page_size", "page_size"},
	{"chunked_prefill_size", "chunked_prefill_size"},
	{"max_running_requests", "requested_max_running_requests"},
	{"max_total_tokens", "requested_tokens"},
	{"context_length", "context_length"},
	{"schedule_conservativeness", "schedule_conservativeness"},
	{"schedule_policy", ""},
	{"hicache_size", "hicache_size"},
	{"hicache_ratio", "hicache_ratio"},
	{"enable_hierarchical_cache", ""},
	{"kv_cache_dtype", ""},
	{"quantization", ""},
	{"attention_backend", ""},
	{"device", ""},
	{"host", ""},
	{"port", "port"},
	{"random_seed", "random_seed"},
}

// parseServerArgs takes the resolved arguments out of "server_args={'k': v, ...}" (0.5.20 on) or
// "server_args=ServerArgs(k=v, ...)". The whole line is some 20 KB; only the keys above are read.
func parseServerArgs(ev *Event, body string) {
	for _, arg := range serverArgKeys {
		value, ok := serverArg(body, arg.key)
		if !ok || value == "None" {
			continue
		}
		if arg.number != "" {
			ev.set(arg.number, value)
			continue
		}
		ev.word(arg.key, strings.Clone(value))
	}
}

// serverArg finds one value: the text between the key and the next separator, unquoted.
func serverArg(body, key string) (string, bool) {
	for _, form := range []string{"'" + key + "': ", "(" + key + "=", ", " + key + "="} {
		_, rest, found := strings.Cut(body, form)
		if !found || rest == "" {
			continue
		}
		if q := rest[0]; q == '\'' || q == '"' {
			if end := strings.IndexByte(rest[1:], q); end >= 0 {
				return rest[1 : 1+end], true
			}
			return rest[1:], true
		}
		if end := strings.IndexAny(rest, ",)}"); end >= 0 {
			rest = rest[:end]
		}
		return rest, true
	}
	return "", false
}
