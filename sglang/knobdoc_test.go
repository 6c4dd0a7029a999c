package sglang_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

// go test ./sglang -run TestKnobsDoc -update writes docs/knobs.md anew; review the difference.
func TestKnobsDoc(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "docs", "knobs.md")
	want := knobsDoc()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil { //nolint:gosec // a document, readable by all
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("docs/knobs.md is not what the table says (go test ./sglang -run TestKnobsDoc -update) -want +got:\n%s", d)
	}
}

const knobsHead = `# Knobs

Written by ` + "`go test ./sglang -run TestKnobsDoc -update`" + ` from the table of package sglang; don't edit it here.

The flags of SGLang's server worth knowing when you tune it. Facts about versions come from the argument
parsers of %d releases, %s to %s; "since" and "until" name the first of those that has a flag, and the first that
lacks it. A default is what the parser gives; *auto* means that the server chooses when it starts, and where it then
takes a fixed value, that value is named. Choices differ by version too: ` + "`sgtune check`" + ` looks at those of the server
you have installed.

How sgtune uses them:

- **Space**: a knob marked *searched* is worth a place in ` + "`space:`" + ` of a study file; the others are for ` + "`server.flags`" + `.
- **Names** are written without dashes. Where the installed version calls a flag otherwise, it is passed by that name.
- **Lossy** values may change the model's answers. The rule ` + "`quality: bf16-only`" + ` keeps them out of every search.
- **Dead** flags are parsed and read by nothing. They are refused in a space.
- Pairs that SGLang refuses or rewrites are [below](#what-does-not-go-together): a refused pair is never launched.
`

// knobsDoc is docs/knobs.md.
func knobsDoc() []byte {
	var b bytes.Buffer
	all := sglang.Releases()
	fmt.Fprintf(&b, knobsHead, len(all), all[0], all[len(all)-1])
	group := sglang.Group("")
	for _, k := range sglang.Knobs() {
		if k.Group != group {
			group = k.Group
			fmt.Fprintf(&b, "\n## %s\n\n| Knob | Meaning | Default | Effect | Risk | Versions |\n|---|---|---|---|---|---|\n", group)
		}
		risk := k.Risk
		if k.Use != "" {
			risk += ". *sgtune:* " + k.Use
		}
		cells := []string{knobName(k), meaning(k), defaults(k), k.Effect, risk, versions(k)}
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	fmt.Fprintf(&b, "\n## What does not go together\n\n")
	fmt.Fprintf(&b, "Checks that SGLang makes between flags. *Refused*: the server does not start. *Rewritten*: it starts with another\nvalue and a warning, so two configurations can be one server. Checks that depend on the model or the GPU are not here.\n\n")
	fmt.Fprintf(&b, "| Rule | Flags | What happens | Versions |\n|---|---|---|---|\n")
	for _, c := range sglang.CombinationRules() {
		what := "rewritten"
		if c.Fatal {
			what = "refused"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Rule, code(c.Flags...), what, span(c.Since, c.Until))
	}
	return b.Bytes()
}

func knobName(k sglang.Knob) string {
	name := "`" + k.Name + "`"
	switch {
	case k.Dead:
		name += " **dead**"
	case k.Tunable:
		name += " *searched*"
	}
	return name
}

func meaning(k sglang.Knob) string {
	text := k.Meaning
	if k.Unit != "" {
		text += "; unit: " + k.Unit
	}
	if len(k.Lossy) > 0 {
		text += "; lossy: " + strings.Join(k.Lossy, ", ")
	}
	return text
}

// defaults lists a knob's default, with versions where it changed.
func defaults(k sglang.Knob) string {
	var texts []string
	last := "-"
	for _, v := range sglang.Releases() {
		value, ok := sglang.DefaultOf(k.Name, v)
		if !ok {
			continue
		}
		text := "auto"
		switch {
		case value == nil && k.Default != nil:
			text = fmt.Sprintf("auto (%s)", sglang.FormatValue(k.Default))
		case value == false:
			text = "off"
		case value == "":
			text = `""`
		case value == float64(math.MaxInt64):
			text = "no limit"
		case value != nil:
			text = sglang.FormatValue(value)
		}
		if text == last {
			continue
		}
		if last != "-" {
			text = fmt.Sprintf("from %s %s", v, text)
		}
		texts = append(texts, text)
		last = strings.TrimPrefix(text, fmt.Sprintf("from %s ", v))
	}
	return strings.Join(texts, "; ")
}

func versions(k sglang.Knob) string {
	text := span(k.Since, k.Until)
	if k.Renamed != "" {
		text += ", now " + code(k.Renamed)
	}
	return text
}

func span(since, until sglang.Version) string {
	var texts []string
	if since != (sglang.Version{}) {
		texts = append(texts, "since "+since.String())
	}
	if until != (sglang.Version{}) {
		texts = append(texts, "until "+until.String())
	}
	if len(texts) == 0 {
		return "all"
	}
	return strings.Join(texts, ", ")
}

func code(names ...string) string {
	out := slices.Clone(names)
	for i, n := range out {
		out[i] = "`" + n + "`"
	}
	return strings.Join(out, ", ")
}
