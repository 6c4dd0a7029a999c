package export

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// WriteShell writes p as a POSIX shell script that becomes the server.
func WriteShell(w io.Writer, p Profile) error {
	if err := p.check(); err != nil {
		return err
	}
	var body bytes.Buffer
	for _, v := range p.environment() {
		if v.secret {
			fmt.Fprintf(&body, "%s\nexport %s=\"${%s}\"\n", demand(v.name), v.name, v.name)
			continue
		}
		fmt.Fprintf(&body, "export %s=%s\n", v.name, quote(v.value))
	}
	words := p.launch()
	for _, word := range words {
		if word.secret != "" {
			fmt.Fprintln(&body, demand(word.secret))
		}
	}
	fmt.Fprintf(&body, "exec %s\n", commandLines(words))

	if _, err := fmt.Fprintln(w, "#!/bin/sh"); err != nil {
		return err
	}
	if err := writeComment(w, p.comment()); err != nil {
		return err
	}
	if oddQuotes.Match(body.Bytes()) { // a hint about typing errors; these characters are meant
		if _, err := fmt.Fprintln(w, "# shellcheck disable=SC1017,SC1018,SC1110,SC1111,SC1112"); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "set -eu\n%s", body.Bytes())
	return err
}

// oddQuotes are characters that shellcheck takes for mistyped quotes or spaces.
var oddQuotes = regexp.MustCompile(`[\r\x{00a0}\x{2018}\x{2019}\x{201c}\x{201d}]`)

// demand stops the script with a clear line where a secret is missing.
func demand(name string) string {
	return fmt.Sprintf(`: "${%s:?is a secret that this file does not hold; set it first}"`, name)
}

// commandLines spells words for the shell, each flag on a line of its own.
func commandLines(words []word) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case strings.HasPrefix(w.text, "--"):
			b.WriteString(" \\\n  ")
		default:
			b.WriteString(" ")
		}
		b.WriteString(spell(w))
	}
	return b.String()
}

func spell(w word) string {
	if w.secret != "" {
		return `"${` + w.secret + `}"`
	}
	return quote(w.text)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote makes text one word for a POSIX shell.
func quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
