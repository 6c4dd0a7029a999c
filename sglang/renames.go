package sglang

import (
	"fmt"
	"slices"
	"strings"
)

// rename is an option that got another name and kept its values. Which release has which name, the
// release table knows.
type rename struct{ old, new string }

// renames are the options that only changed their name, from the texts of SGLang's own deprecated
// aliases, and where it kept none, from the fields that took their place in server_args.py.
var renames = []rename{
	{"cuda-graph-max-bs", "cuda-graph-max-bs-decode"},
	{"cuda-graph-bs", "cuda-graph-bs-decode"},
	{"piecewise-cuda-graph-tokens", "cuda-graph-bs-prefill"},
	{"piecewise-cuda-graph-max-tokens", "cuda-graph-max-bs-prefill"},
	{"piecewise-cuda-graph-compiler", "cuda-graph-tc-compiler"},
	{"mamba-scheduler-strategy", "mamba-radix-cache-strategy"},
	{"nsa-prefill", "nsa-prefill-backend"},
	{"nsa-decode", "nsa-decode-backend"},
	{"nsa-prefill-backend", "dsa-prefill-backend"},
	{"nsa-decode-backend", "dsa-decode-backend"},
	{"nsa-prefill-cp-mode", "dsa-prefill-cp-mode"},
	{"enable-nsa-prefill-context-parallel", "enable-dsa-prefill-context-parallel"},
	{"enable-dsa-prefill-context-parallel", "enable-prefill-cp"},
	{"enable-prefill-context-parallel", "enable-prefill-cp"},
	{"speculative-dflash-draft-window-size", "speculative-draft-window-size"},
	{"stream-output", "incremental-streaming-output"},
	{"enable-gdn-replayssm-spec", "enable-linear-replayssm-spec"},
	{"impl", "model-impl"},
	{"enable-flashinfer-moe", "enable-flashinfer-cutlass-moe"},
	{"oltp-traces-endpoint", "otlp-traces-endpoint"},
	{"kt-amx-method", "kt-method"},
	{"kt-amx-weight-path", "kt-weight-path"},
	{"max-micro-batch-size", "pp-max-micro-batch-size"},
	{"grpc-mode", "smg-grpc-mode"},
	{"hierarchical-sparse-attention-extra-config", "hisparse-config"},
}

// successor is an option whose work another one does with a value of its own.
type successor struct {
	old  string
	when any    // value of old it applies to; nil = any that is not false
	sets Config // what to pass instead; flags or env. variables
	like string // "tp-size": sets[...] gets this option's value instead of its own
}

// successors are in the words of SGLang's own deprecation texts.
var successors = []successor{
	{old: "enable-ep-moe", sets: Config{"ep-size": 1.0}, like: "tp-size"},
	{old: "enable-deepep-moe", sets: Config{"moe-a2a-backend": "deepep"}},
	{old: "enable-flashinfer-cutlass-moe", sets: Config{"moe-runner-backend": "flashinfer_cutlass"}},
	{old: "enable-flashinfer-cutedsl-moe", sets: Config{"moe-runner-backend": "flashinfer_cutedsl"}},
	{old: "enable-flashinfer-trtllm-moe", sets: Config{"moe-runner-backend": "flashinfer_trtllm"}},
	{old: "enable-flashinfer-mxfp4-moe", sets: Config{"moe-runner-backend": "flashinfer_mxfp4"}},
	{old: "enable-triton-kernel-moe", sets: Config{"moe-runner-backend": "triton_kernel"}},
	{old: "enable-flashinfer-mla", sets: Config{"attention-backend": "flashinfer"}},
	{old: "enable-flashmla", sets: Config{"attention-backend": "flashmla"}},
	{old: "enable-flashinfer-allreduce-fusion", sets: Config{"flashinfer-allreduce-fusion-backend": "auto"}},
	{old: "enable-breakable-cuda-graph", sets: Config{"cuda-graph-backend-prefill": "breakable"}},
	{old: "disable-piecewise-cuda-graph", sets: Config{"cuda-graph-backend-prefill": "disabled"}},
	{old: "enforce-piecewise-cuda-graph", sets: Config{"cuda-graph-backend-prefill": "tc_piecewise"}},
	{old: "disable-cuda-graph", sets: Config{"cuda-graph-backend-decode": "disabled", "cuda-graph-backend-prefill": "disabled"}},
	{old: "enable-dp-attention", sets: Config{"attn-dp-size": 1.0}, like: "dp-size"},
	{old: "prefill-cp-mode", when: "in-seq-split", sets: Config{"cp-strategy": "zigzag"}},
	{old: "dsa-prefill-cp-mode", when: "in-seq-split", sets: Config{"cp-strategy": "zigzag"}},
	{old: "dsa-prefill-cp-mode", when: "round-robin-split", sets: Config{"cp-strategy": "interleave"}},
	{old: "nsa-prefill-cp-mode", when: "in-seq-split", sets: Config{"cp-strategy": "zigzag"}},
	{old: "nsa-prefill-cp-mode", when: "round-robin-split", sets: Config{"cp-strategy": "interleave"}},
	{old: "elastic-ep-rejoin", sets: Config{"elastic-ep-join-mode": "recover"}},
	{old: "disable-fast-image-processor", sets: Config{"image-processor-backend": "pil"}},
	{old: "keep-mm-feature-on-device", sets: Config{"mm-feature-transport": "cuda_ipc"}},
	{old: "monokernel-backend", when: "amd", sets: Config{"enable-amd-monokernel": true}},
	{old: "enable-nan-detection", sets: Config{EnvPrefix + "SGLANG_SPEC_NAN_DETECTION": "1", EnvPrefix + "SGLANG_SPEC_OOB_DETECTION": "1"}},
}

// renamed is the name that a set of options has for a flag it does not have, or has only as a
// deprecated alias; ok is false when it has none.
func renamed(name string, flags Flags) (now string, ok bool) {
	if now, ok := chase(name, flags, func(r rename) (from, to string) { return r.old, r.new }); ok {
		return now, true
	}
	return chase(name, flags, func(r rename) (from, to string) { return r.new, r.old })
}

// chase follows renames in one direction until flags know the name well.
func chase(name string, flags Flags, way func(rename) (from, to string)) (string, bool) {
	for range renames { // a chain is never longer than the table
		next := ""
		for _, r := range renames {
			if from, to := way(r); from == name {
				next = to
				if flags.fresh(next) {
					return next, true
				}
			}
		}
		if next == "" {
			return "", false
		}
		name = next
	}
	return "", false
}

// fresh reports whether flags have a name that is not on its way out.
func (f Flags) fresh(name string) bool {
	flag, ok := f[name]
	return ok && !flag.Deprecated
}

// CurrentName is the name of a flag in a version: renamed flags are mapped in both directions, an
// alias becomes the name sgtune uses. A flag that no release knows, and one that this version has
// under no name, keep the name they have; an unknown version counts as the newest.
func CurrentName(name string, v Version) string {
	flags, _ := FlagsOf(v)
	return flags.Current(name)
}

// Current is CurrentName for the options of one server.
func (f Flags) Current(name string) string {
	if flag, ok := f[name]; ok && !flag.Deprecated {
		if f.Has(flag.Canonical) {
			return flag.Canonical
		}
		return name
	}
	if now, ok := renamed(name, f); ok {
		return now
	}
	return name
}

// Translate maps a configuration to a version: flags that were renamed since or before, and flags
// whose work another flag does now. Flags that the version has no way to say stay as they are and
// are reported as problems; those deprecated but still taken stay too. notes say what was mapped, a
// sentence each. base is what the configuration is laid over (for "the same value as tp-size").
func Translate(c, base Config, flags Flags) (out Config, notes []string, problems []*FlagError) {
	out = Config{}
	for _, name := range c.Names() {
		if strings.HasPrefix(name, EnvPrefix) || flags.fresh(name) {
			out[flags.Current(name)] = c[name]
			continue
		}
		if now, ok := renamed(name, flags); ok {
			out[now] = c[name]
			notes = append(notes, fmt.Sprintf("%s is called %s in this version and is passed so.", name, now))
			continue
		}
		if flag, ok := flags[name]; ok && flag.Form != FormNothing {
			out[name] = c[name]
			continue
		}
		sets, ok := successorOf(name, c[name], Merge(base, c), flags)
		if !ok {
			out[name] = c[name]
			problems = append(problems, missing(name))
			continue
		}
		for _, to := range sets.Names() {
			out[to] = sets[to]
		}
		if len(sets) == 0 {
			notes = append(notes, fmt.Sprintf("%s is off, and this version has no such flag: it is left out.", name))
		} else {
			notes = append(notes, fmt.Sprintf("%s is gone in this version; %s is passed instead.", name, strings.Join(FlagWords(sets), " ")))
		}
	}
	return out, notes, problems
}

// successorOf is what says in flags what name = value said; ok is false when nothing does.
func successorOf(name string, value any, all Config, flags Flags) (Config, bool) {
	if value == false {
		return Config{}, true // off is what a missing flag is
	}
	for _, s := range successors {
		if s.old != name || s.when != nil && s.when != value {
			continue
		}
		sets := Config{}
		for to, v := range s.sets {
			if !strings.HasPrefix(to, EnvPrefix) && !flags.fresh(to) {
				return nil, false
			}
			if s.like != "" {
				v = all[s.like]
				if v == nil {
					v = 1.0
				}
			}
			sets[to] = v
		}
		return sets, true
	}
	return nil, false
}

// missing says that a server does not have a flag, and what to do.
func missing(name string) *FlagError {
	e := &FlagError{Name: name, Why: TroubleGone, Text: fmt.Sprintf("the server has no flag --%s; remove it", name)}
	first, _, ok := firstAndLast(name)
	_, left := goneSince(name)
	switch instead := successorText(name); {
	case !ok:
		e.Why = TroubleUnknown
	case instead != "":
		e.Text = fmt.Sprintf("the server has no flag --%s; use %s", name, instead)
	case !left:
		e.Why, e.Text = TroubleLater, fmt.Sprintf("the server has no flag --%s; it came with SGLang %s, remove it", name, first)
	}
	return e
}

// successorText says in words what took a flag's place; "" when nothing did.
func successorText(name string) string {
	var texts []string
	for _, s := range successors {
		if s.old != name {
			continue
		}
		var words []string
		for _, to := range s.sets.Names() {
			value := FormatValue(s.sets[to])
			if s.like != "" {
				value = "as large as --" + s.like
			}
			word := "--" + to
			if key, isEnv := strings.CutPrefix(to, EnvPrefix); isEnv {
				words = append(words, "the environment variable "+key+"="+value)
				continue
			}
			if s.sets[to] != true {
				word += " " + value
			}
			words = append(words, word)
		}
		text := strings.Join(words, " and ")
		if s.when != nil {
			text += fmt.Sprintf(" for %v", s.when)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		for _, r := range renames {
			if r.old == name {
				return "--" + r.new
			}
		}
	}
	return strings.Join(slices.Compact(texts), ", ")
}
