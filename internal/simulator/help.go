package simulator

import (
	"fmt"
	"strings"
)

// usageText is the usage block argparse prints before an error.
func (d *dialect) usageText() string {
	var b strings.Builder
	b.WriteString("usage: " + d.prog + " [-h]")
	col, indent := b.Len(), len("usage: ")+len(d.prog)
	for _, f := range d.flags().rows {
		if len(f.options) == 0 || f.key == "help" {
			continue
		}
		word := "[" + f.options[0] + f.meta() + "]"
		if f.key == "model_path" {
			word = f.options[0] + f.meta()
		}
		if col+1+len(word) > 79 {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			col = indent
		}
		b.WriteString(" " + word)
		col += 1 + len(word)
	}
	return b.String()
}

// meta is what argparse prints after an option's name.
func (f flag) meta() string {
	switch {
	case f.kind == "true" || f.kind == "switch":
		return ""
	case len(f.choices) > 0:
		return " {" + strings.Join(f.choices, ",") + "}"
	}
	m := strings.ToUpper(f.key)
	switch f.many {
	case "+":
		return fmt.Sprintf(" %s [%s ...]", m, m)
	case "*":
		return fmt.Sprintf(" [%s ...]", m)
	}
	return " " + m
}

// helpText is --help: every option this version of SGLang lists, without its prose, and the simulator's own.
func (d *dialect) helpText() string {
	var b strings.Builder
	b.WriteString(d.usageText() + "\n\noptions:\n  -h, --help            show this help message and exit\n")
	for _, f := range d.flags().rows {
		if len(f.options) == 0 || f.key == "help" {
			continue
		}
		names := make([]string, len(f.options))
		for i, o := range f.options {
			names[i] = o + f.meta()
		}
		b.WriteString("  " + strings.Join(names, ", ") + "\n")
	}
	b.WriteString("\nsimulator (not options of SGLang):\n")
	for _, f := range simFlags {
		fmt.Fprintf(&b, "  %s %s\n                        %s\n", f.name, f.meta, f.text)
	}
	b.WriteString("\nfaults (--sim-fault):\n")
	for _, f := range faults {
		fmt.Fprintf(&b, "  %-22s%s\n", f.spelling(), f.text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
