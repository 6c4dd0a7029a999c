package store

import (
	"regexp"
	"slices"
	"strings"

	"sgtune/benchmark"
	"sgtune/sglang"
	"sgtune/trial"
)

const masked = "***"

// reference is a secret named, not shown: ${HF_TOKEN}.
var reference = regexp.MustCompile(`^\$\{\w+\}$`)

// maskArgv masks the words of a command line: each for itself, and the value after a flag whose
// name says secret.
func maskArgv(argv []string) []string {
	out := slices.Clone(argv)
	for i, word := range out {
		out[i] = sglang.Mask(word)
		if i > 0 && strings.HasPrefix(argv[i-1], "--") && !strings.HasPrefix(word, "--") {
			out[i] = maskValue(argv[i-1]+" ", word)
		}
	}
	return out
}

// maskValue masks a value whose name comes before it: "--api-key ", "HF_TOKEN=".
func maskValue(name, value string) string {
	if reference.MatchString(value) {
		return value
	}
	if probe := name + "x"; sglang.Mask(probe) != probe {
		return masked
	}
	return sglang.Mask(value)
}

func maskAll(texts []string) []string {
	out := slices.Clone(texts)
	for i, s := range out {
		out[i] = sglang.Mask(s)
	}
	return out
}

// maskConfig masks the values of secret flags and variables.
func maskConfig(c sglang.Config) sglang.Config {
	out := c.Clone()
	for name, v := range out {
		label := "--" + name + " "
		if variable, found := strings.CutPrefix(name, sglang.EnvPrefix); found {
			label = variable + "="
		}
		text := sglang.FormatValue(v) // a key may be all digits
		if hidden := maskValue(label, text); hidden != text {
			out[name] = hidden
		}
	}
	return out
}

func maskServer(s sglang.Server) sglang.Server {
	s.Command = maskArgv(s.Command)
	s.Flags = maskConfig(s.Flags)
	if s.Env != nil {
		env := make(map[string]string, len(s.Env))
		for name, value := range s.Env {
			env[name] = maskValue(name+"=", value)
		}
		s.Env = env
	}
	if s.Container != nil {
		c := *s.Container
		c.Args = maskArgv(c.Args)
		s.Container = &c
	}
	return s
}

func maskVerdict(v trial.Verdict) trial.Verdict {
	v.Evidence = sglang.Mask(v.Evidence)
	v.Text = sglang.Mask(v.Text)
	v.Advice = maskAll(v.Advice)
	v.RejectedFlags = maskAll(v.RejectedFlags)
	v.Findings = slices.Clone(v.Findings)
	for i := range v.Findings {
		v.Findings[i].Text = sglang.Mask(v.Findings[i].Text)
	}
	return v
}

// cleanReport masks texts and puts times into UTC.
func cleanReport(r *benchmark.Report) *benchmark.Report {
	if r == nil {
		return nil
	}
	out := *r
	out.Advice = sglang.Mask(r.Advice)
	out.Errors = maskAll(r.Errors)
	out.Flags = maskAll(r.Flags)
	out.Windows = slices.Clone(r.Windows)
	for i := range out.Windows {
		out.Windows[i].Start = out.Windows[i].Start.UTC()
	}
	return &out
}
