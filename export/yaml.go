package export

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"sgtune/sglang"
)

// simPrefix starts the flags of sgtune's own simulated server; SGLang has none of them.
const simPrefix = "sim-"

// WriteSGLangYAML writes p as a file for SGLang's own --config. What that file cannot hold (the
// environment, secrets, flags its parser refuses) is part of the command in its comment.
func WriteSGLangYAML(w io.Writer, p Profile) error {
	if err := p.check(); err != nil {
		return err
	}
	var body bytes.Buffer
	var beside []string // words that have to stay on the command line
	if p.Server.Model != "" {
		fmt.Fprintf(&body, "model-path: %s\n", scalar(p.Server.Model))
	}
	flags := forParser(p.Server.Passed(p.Config))
	for _, name := range flags.Names() {
		words := sglang.FlagWords(sglang.Config{name: flags[name]})
		switch {
		case len(words) == 0, strings.HasPrefix(name, simPrefix):
		case refusedKeys[name], secretFlag("--"+name) != "":
			beside = append(beside, words...)
		default:
			writeEntry(&body, name, flags)
		}
	}
	lines := append(p.comment(), "", "Start it with (--config and the file are two words):", "  "+startLine(p, beside))
	if err := writeComment(w, lines); err != nil {
		return err
	}
	_, err := w.Write(body.Bytes())
	return err
}

// writeEntry writes one flag that the server is given.
func writeEntry(b *bytes.Buffer, name string, flags sglang.Config) {
	switch v := flags[name].(type) {
	case bool: // false has no words and does not come here
		fmt.Fprintf(b, "%s: true\n", name)
	case []any:
		items := make([]string, len(v))
		for i, x := range v {
			items[i] = scalar(x)
		}
		fmt.Fprintf(b, "%s: [%s]\n", name, strings.Join(items, ", "))
	default:
		if name == "hicache-size" && flags["enable-hierarchical-cache"] != true {
			b.WriteString("enable-hierarchical-cache: true\n")
		}
		fmt.Fprintf(b, "%s: %s\n", name, scalar(v))
	}
}

// startLine is the command that uses the file, as a shell takes it.
func startLine(p Profile, beside []string) string {
	var parts []string
	for _, v := range p.environment() {
		value := quote(v.value)
		if v.secret {
			value = `"${` + v.name + `}"`
		}
		parts = append(parts, v.name+"="+value)
	}
	file := p.Study + ".sglang.yaml"
	if c := p.Server.Container; c != nil { // the file is put where the container sees it
		for _, w := range p.runWords() {
			parts = append(parts, spell(w))
		}
		parts = append(parts, "-v", `"$PWD/`+file+`:/`+file+`:ro"`, quote(c.Image))
		file = "/" + file
	}
	argv := append(withoutSim(p.Server.Command), "--config", file)
	for _, w := range toWords(append(argv, beside...)) {
		parts = append(parts, spell(w))
	}
	return strings.Join(parts, " ")
}

// withoutSim drops --sim-* flags and their values.
func withoutSim(argv []string) []string {
	var out []string
	skip := false
	for _, w := range argv {
		if strings.HasPrefix(w, "--") {
			skip = strings.HasPrefix(w, "--"+simPrefix)
		}
		if !skip {
			out = append(out, w)
		}
	}
	return out
}

var plainScalar = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)

// yamlWords are plain scalars that are not texts in YAML 1.1, which SGLang's reader speaks.
var yamlWords = map[string]bool{
	"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true, "true": true, "false": true, "null": true,
}

// scalar spells a value for YAML: numbers and booleans as they are, texts in double quotes unless
// nothing could mistake them. Go's escapes are YAML's.
func scalar(v any) string {
	text, ok := v.(string)
	if !ok {
		return sglang.FormatValue(v)
	}
	text = strings.ReplaceAll(text, "{port}", DefaultPort)
	if plainScalar.MatchString(text) && !yamlWords[strings.ToLower(text)] {
		return text
	}
	return strconv.Quote(text)
}
