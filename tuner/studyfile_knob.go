package tuner

import (
	"strings"

	"sgtune/sglang"
)

// own are flags that sgtune itself sets or that have a place of their own in the study file.
var own = map[string]string{
	"model-path":         "write it as server.model",
	"model":              "write it as server.model",
	"config":             "write its flags into server.flags, so that every trial shows them",
	"hicache":            "write hicache-size, 0 for off",
	"enable-hicache":     "write hicache-size, 0 for off",
	"help":               "remove it",
	"version":            "remove it",
	"skip-server-warmup": "remove it: a server would be called ready before it has made one token",
}

// notSearched are flags that may be fixed but not searched.
var notSearched = map[string]string{
	"port":          "a port changes nothing a trial measures; write it in server.flags or leave it out",
	"host":          "an address changes nothing a trial measures; write it in server.flags",
	"api-key":       "a key changes nothing a trial measures; write it in server.flags",
	"admin-api-key": "a key changes nothing a trial measures; write it in server.flags",
	hicacheOn:       "write hicache-size with 0 among its values: 0 = off",
	"random-seed":   "a seed changes nothing worth a trial; write it in server.flags",
}

// knobName checks the name of a flag or knob and returns SGLang's present spelling of it.
func (d *decoder) knobName(f field, where string, searched bool) (string, bool) {
	name := f.name
	bad := func(format string, args ...any) (string, bool) {
		d.at(f.line, f.col, format, args...)
		return "", false
	}
	if key, ok := strings.CutPrefix(name, sglang.EnvPrefix); ok {
		switch {
		case !envName.MatchString(key):
			return bad("%s is not the name of an environment variable; use letters, digits and _", quote(name))
		case where == "server.flags":
			return bad("%s is an environment variable; write it in server.env as %s", quote(path(where, name)), quote(key))
		case secretName(key):
			return bad("%s is a secret, which changes nothing a trial measures; write it in server.env as %s", quote(path(where, name)), quote(key))
		}
		return name, true
	}
	if plain := strings.TrimLeft(name, "-"); plain != name {
		return bad("%s has dashes; did you mean %s?", quote(path(where, name)), quote(plain))
	}
	if strings.HasPrefix(name, "sim-") {
		if searched {
			return bad("%s belongs to the simulated server, not to SGLang; remove it from the space", quote(path(where, name)))
		}
		return name, true
	}
	if why, ok := own[name]; ok {
		return bad("%s cannot stand here; %s", quote(path(where, name)), why)
	}
	if why, ok := notSearched[name]; ok && searched {
		return bad("%s cannot be searched: %s", quote(path(where, name)), why)
	}
	if probe := "--" + name + " x1"; where == "server.baseline" && sglang.Mask(probe) != probe && sglang.Known(name) {
		return bad("%s is a secret, which changes nothing a trial measures; write it in server.flags", quote(path(where, name)))
	}
	if plain, ok := aliases[name]; ok {
		name = plain
	}
	name = sglang.Canonical(name)
	if !sglang.Known(name) {
		if s := sglang.Suggest(name); s != "" {
			return bad("unknown knob %s; did you mean `%s`?", quote(path(where, name)), s)
		}
		return bad("unknown knob %s: SGLang has no such flag; check its spelling against sglang's --help, or remove it", quote(path(where, name)))
	}
	if knob, _ := sglang.Lookup(name); knob.Dead && (searched || where == "server.baseline") {
		return bad("%s does nothing: SGLang takes it, but no version reads it; remove it", quote(path(where, name)))
	}
	return name, true
}

// aliases are shortened names that people write; SGLang's parser takes them, too.
var aliases = map[string]string{"tp": "tp-size", "pp": "pp-size", "dp": "dp-size"}

// knobValue checks a value against what SGLang's parser takes, as far as sgtune knows it.
func (d *decoder) knobValue(n *node, name string, v any) bool {
	err := sglang.CheckValue(name, v)
	if err == nil {
		return true
	}
	knob, _ := sglang.Lookup(name)
	if s := closest(sglang.FormatValue(v), knob.Choices); s != "" {
		d.wrong(n, "`%s` has no value %s; did you mean `%s`?", name, quote(sglang.FormatValue(v)), s)
	} else {
		d.wrong(n, "%v; write a value SGLang takes", err)
	}
	return false
}
