package launch

import (
	"encoding/json"
	"slices"
	"strings"

	"sgtune/sglang"
)

// readConfig reads a file for SGLang's own --config.
func readConfig(root *mapping) ([]Launch, error) {
	known := 0
	for _, key := range root.keys {
		if sglang.Known(strings.ReplaceAll(key, "_", "-")) {
			known++
		}
	}
	if known == 0 || known*2 < len(root.keys) {
		return nil, nil
	}
	l := Launch{Kind: KindConfig, Command: []string{"python3", "-m", "sglang.launch_server"}, Env: map[string]string{}}
	l.Args = configArgs(root, l.note)
	l.note("The file is one for SGLang's --config; python3 -m sglang.launch_server is assumed to start it.")
	return []Launch{l}, nil
}

// configArgs turns a --config file into arguments as SGLang does
// (srt/utils/server_args_config_parser.py): a key becomes --key; true a bare flag, false nothing;
// a list several words; a mapping JSON text.
func configArgs(root *mapping, note func(string, ...any)) []string {
	var args []string
	flags, _ := sglang.FlagsOf(sglang.Version{})
	for i, key := range root.keys {
		name := strings.ReplaceAll(key, "_", "-")
		if name != key {
			note("SGLang refuses the key %s in its yaml; it is read as %s.", key, name)
		}
		switch v := root.values[i].(type) {
		case nil:
			note("The key %s has no value; SGLang would read it as the word None. It is left out.", key)
		case bool:
			flag, err := flags.Find(name)
			switch {
			case err == nil && flag.TakesValue:
				args = append(args, "--"+name, map[bool]string{true: "true", false: "false"}[v])
			case v:
				args = append(args, "--"+name)
			}
		case []any:
			if words, ok := texts(v); ok && len(words) > 0 {
				args = append(append(args, "--"+name), words...)
			}
		case *mapping:
			args = append(args, "--"+name, jsonText(v))
		default:
			s, _ := scalar(v)
			args = append(args, "--"+name, s)
		}
	}
	return args
}

// jsonText spells a YAML value as JSON, keys in file order.
func jsonText(v any) string {
	switch v := v.(type) {
	case *mapping:
		parts := make([]string, len(v.keys))
		for i, k := range v.keys {
			parts[i] = quoteJSON(k) + ": " + jsonText(v.values[i])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = jsonText(x)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return quoteJSON(v)
	case nil:
		return "null"
	}
	s, _ := scalar(v)
	return s
}

func quoteJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

// withConfig puts the flags of a --config file before the others, as SGLang does; the command line
// wins.
func (l *Launch) withConfig(opt Options) {
	i := slices.Index(l.Args, "--config")
	if i < 0 || i+1 >= len(l.Args) {
		return
	}
	name := l.Args[i+1]
	rest := slices.Concat(l.Args[:i], l.Args[i+2:])
	path := joinDir(l.Dir, opt, name)
	if opt.ReadFile == nil || unknown(name) || l.Container != nil {
		l.note("The flags in %s (--config) were not read; write them into server.flags.", name)
		l.Args = rest
		return
	}
	source, err := opt.ReadFile(path)
	var docs []any
	if err == nil && len(source) <= maxSource {
		docs, err = decodeYAML(source)
	}
	root, ok := first(docs).(*mapping)
	if err != nil || !ok {
		l.note("The file %s (--config) cannot be read here; write its flags into server.flags.", name)
		l.Args = rest
		return
	}
	l.Args = append(configArgs(root, l.note), rest...)
	l.note("The flags of %s (--config) are written out, so that every trial shows them.", name)
}

func first(docs []any) any {
	if len(docs) == 0 {
		return nil
	}
	return docs[0]
}
