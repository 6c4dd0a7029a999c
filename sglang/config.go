package sglang

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// EnvPrefix marks a knob that is an environment variable: "env.NCCL_ALGO".
const EnvPrefix = "env."

// Config is one configuration: SGLang flag name without dashes ("mem-fraction-static"), or
// EnvPrefix + variable name, to value. A value is a float64, a string, a bool or a []any of those:
// exactly what JSON decodes to, so a Config survives the store unchanged. Whole numbers print
// without a decimal point.
//
// One value is special: "hicache-size" 0 means that the hierarchical cache is off
// (--enable-hierarchical-cache is not passed at all); above 0 both flags are passed.
type Config map[string]any

// Clone returns an independent copy.
func (c Config) Clone() Config { return maps.Clone(c) }

// Merge returns base with every entry of over laid on top.
func Merge(base, over Config) Config {
	out := Config{}
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

// Names returns the knob names in sorted order.
func (c Config) Names() []string { return slices.Sorted(maps.Keys(c)) }

// Key is the canonical text of a configuration: two configurations are the same one exactly when
// their keys are equal.
func (c Config) Key() string {
	b, err := json.Marshal(map[string]any(c)) // map keys are sorted by encoding/json
	if err != nil {
		return fmt.Sprintf("unmarshalable configuration: %v", err)
	}
	return string(b)
}

// Float returns a numeric knob; ok is false when it is absent or not a number.
func (c Config) Float(name string) (v float64, ok bool) {
	v, ok = c[name].(float64)
	return v, ok
}

// Text returns a knob's value as SGLang's command line spells it.
func (c Config) Text(name string) string { return FormatValue(c[name]) }

// FormatValue spells one value as SGLang's command line does: 0.85, 8192, bf16, true.
func FormatValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case []any:
		words := make([]string, len(v))
		for i, x := range v {
			words[i] = FormatValue(x)
		}
		return strings.Join(words, " ")
	default:
		return fmt.Sprint(v)
	}
}

// Environ returns the environment variables among the knobs.
func (c Config) Environ() map[string]string {
	env := map[string]string{}
	for name, v := range c {
		if rest, ok := strings.CutPrefix(name, EnvPrefix); ok {
			env[rest] = FormatValue(v)
		}
	}
	return env
}
