package sglang

import "bytes"

// serverArgKeys are the resolved arguments worth keeping from the server_args line. Numbers go to
// Values under the name given here, everything else ("") to Words under SGLang's own name.
var serverArgKeys = map[string]string{
	"model_path":                   "",
	"mem_fraction_static":          "mem_fraction_static",
	"tp_size":                      "tp_size",
	"dp_size":                      "dp_size",
	"attn_dp_size":                 "attn_dp_size",
	"pp_size":                      "pp_size",
	"ep_size":                      "ep_size",
	"nnodes":                       "nnodes",
	"node_rank":                    "node_rank",
	"page_size":                    "page_size",
	"chunked_prefill_size":         "chunked_prefill_size",
	"max_running_requests":         "requested_max_running_requests",
	"max_total_tokens":             "requested_tokens",
	"max_prefill_tokens":           "max_prefill_tokens",
	"context_length":               "context_length",
	"schedule_conservativeness":    "schedule_conservativeness",
	"schedule_policy":              "",
	"hicache_size":                 "hicache_size",
	"hicache_ratio":                "hicache_ratio",
	"enable_hierarchical_cache":    "",
	"hicache_mem_layout":           "",
	"hicache_write_policy":         "",
	"hicache_storage_backend":      "",
	"disable_radix_cache":          "",
	"cuda_graph_max_bs":            "cuda_graph_max_bs",
	"cuda_graph_max_bs_decode":     "cuda_graph_max_bs",
	"disable_cuda_graph":           "",
	"disable_overlap_schedule":     "",
	"enable_dp_attention":          "",
	"speculative_algorithm":        "",
	"speculative_num_steps":        "speculative_num_steps",
	"disaggregation_mode":          "",
	"kv_cache_dtype":               "",
	"dtype":                        "",
	"quantization":                 "",
	"attention_backend":            "",
	"cpu_offload_gb":               "cpu_offload_gb",
	"watchdog_timeout":             "watchdog_timeout",
	"skip_server_warmup":           "",
	"device":                       "",
	"host":                         "",
	"port":                         "port",
	"random_seed":                  "random_seed",
	"mamba_full_memory_ratio":      "mamba_full_memory_ratio",
	"swa_full_tokens_ratio":        "swa_full_tokens_ratio",
	"hicache_host_memory_fraction": "hicache_host_memory_fraction",
	"max_mamba_cache_size":         "max_mamba_cache_size",
	"mamba_ssm_dtype":              "",
	"disable_hybrid_swa_memory":    "",
	"speculative_num_draft_tokens": "speculative_num_draft_tokens",
	"speculative_draft_model_path": "",
	"dsa_prefill_backend":          "",
	"dsa_decode_backend":           "",
	"nsa_prefill_backend":          "",
	"nsa_decode_backend":           "",
}

// parseServerArgs takes the resolved arguments out of "server_args={'k': v, ...}" (0.5.20 on) or
// "server_args=ServerArgs(k=v, ...)". Values may hold lists, dicts and quoted commas; only the
// outermost pairs count. A line that was cut gives the pairs before the cut.
func parseServerArgs(ev *Event, body []byte) {
	_, body, _ = bytes.Cut(body, []byte("server_args="))
	open := bytes.IndexAny(body, "({")
	if open < 0 {
		return
	}
	separator := byte('=')
	if body[open] == '{' {
		separator = ':'
	}
	rest := body[open+1:]
	for len(rest) > 0 {
		end := pairEnd(rest)
		name, value, ok := bytes.Cut(rest[:end], []byte{separator})
		if ok {
			ev.serverArg(unquote(bytes.TrimSpace(name)), bytes.TrimSpace(value))
		}
		if end == len(rest) || rest[end] != ',' {
			return
		}
		rest = rest[end+1:]
	}
}

func (ev *Event) serverArg(name, value []byte) {
	number, wanted := serverArgKeys[string(name)]
	if !wanted || len(value) == 0 || string(value) == "None" {
		return
	}
	value = unquote(value)
	if number != "" {
		ev.set(number, string(value))
		return
	}
	ev.word(string(name), string(value))
}

// pairEnd is the offset of the comma or the bracket that ends the first pair of text, outside quotes
// and inner brackets, or its length.
func pairEnd(text []byte) int {
	depth := 0
	var quote byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			if depth == 0 {
				return i
			}
			depth--
		case c == ',' && depth == 0:
			return i
		}
	}
	return len(text)
}

// unquote takes the quotes of a Python string off; one that was cut may lack the second.
func unquote(text []byte) []byte {
	if len(text) == 0 || text[0] != '\'' && text[0] != '"' {
		return text
	}
	quote := text[0]
	text = text[1:]
	if n := len(text); n > 0 && text[n-1] == quote {
		text = text[:n-1]
	}
	return text
}
