package simulator

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// expandConfig puts the flags of --config FILE in front of the command line, by SGLang's rules: two
// separate words, a mapping of option names, true adds a bare flag, false nothing, a list its items. A version
// without --config leaves it to its parser, which does not know it.
func expandConfig(set *flagSet, argv []string) ([]string, error) {
	i := slices.Index(argv, "--config")
	if _, has := set.index["--config"]; !has || i < 0 || i+1 >= len(argv) {
		return argv, nil
	}
	path := argv[i+1]
	rest := slices.Concat(argv[:i], argv[i+2:])
	if !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") {
		return nil, &RefusedError{"ValueError", "Config file must be YAML format, got: " + path}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &RefusedError{"FileNotFoundError", fmt.Sprintf("Config file not found: %s", path)}
	}
	var m yaml.MapSlice
	if err := yaml.Unmarshal(b, &m); err != nil {
		return nil, &RefusedError{"ValueError", "Config file must contain a dictionary at root level"}
	}
	var words []string
	for _, item := range m {
		words = append(words, configWords(set, fmt.Sprint(item.Key), item.Value)...)
	}
	return append(words, rest...), nil
}

// configWords spells one entry of a config file.
func configWords(set *flagSet, key string, value any) []string {
	option := "--" + key
	switch v := value.(type) {
	case bool:
		i, known := set.index[option]
		if known && (set.rows[i].kind == "true") {
			if v {
				return []string{option}
			}
			return nil
		}
		return []string{option, fmt.Sprint(v)}
	case []any:
		if len(v) == 0 {
			return nil
		}
		words := []string{option}
		for _, x := range v {
			words = append(words, fmt.Sprint(x))
		}
		return words
	case nil:
		return []string{option, "None"}
	case yaml.MapSlice, map[string]any:
		b, err := json.Marshal(v)
		if err != nil {
			return []string{option, "{}"}
		}
		return []string{option, string(b)}
	}
	return []string{option, fmt.Sprint(value)}
}
