package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"sgtune/sglang"
	"sgtune/tuner"
)

// leastInherited is the length from which a value of our own environment is taken for a secret wherever it
// stands: shorter ones would hit ordinary words.
const leastInherited = 8

// secrets are the exact values that no log, page or file may show: those that the study gives its server by
// flags whose names say so, its command and its variables, and those of our own environment, which local
// children inherit. Values are masked by their names and shapes too (sglang.Mask); these ones also without.
func secrets(s *tuner.Study, environ []string) []string {
	var out []string
	add := func(value string) {
		if value != "" && !strings.HasPrefix(value, "${") && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	for _, c := range []sglang.Config{s.Server.Flags, s.Baseline} {
		for _, name := range c.Names() {
			if variable, found := strings.CutPrefix(name, sglang.EnvPrefix); found && secretVariable(variable) || secretFlag("--"+name) {
				add(c.Text(name))
			}
		}
	}
	words := strings.Fields(strings.Join(s.Server.Command, " ")) // a shell's -c holds many
	for i, word := range words {
		name, value, inline := strings.Cut(word, "=")
		switch {
		case inline && (secretFlag(name) || secretVariable(name)):
			add(strings.Trim(value, `'"`))
		case !inline && i+1 < len(words) && secretFlag(name):
			add(strings.Trim(words[i+1], `'"`))
		}
	}
	for name, value := range s.Server.Env {
		if secretVariable(name) {
			add(value)
		}
	}
	for _, pair := range environ {
		if name, value, _ := strings.Cut(pair, "="); secretVariable(name) && len(value) >= leastInherited {
			add(value)
		}
	}
	slices.Sort(out)
	return out
}

// secretVariable reports whether a variable's name says that it holds a secret (contract: study file).
func secretVariable(name string) bool {
	return slices.ContainsFunc([]string{"_TOKEN", "_KEY", "_SECRET", "_PASSWORD"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// secretFlag reports whether a flag's name says that its value is a secret: --api-key.
func secretFlag(name string) bool {
	probe := name + " x1"
	return strings.HasPrefix(name, "--") && sglang.Mask(probe) != probe
}

// hideSecrets masks what a file holds from a place on, each line in place and at its own length: a server
// may go on writing at its end. It is for logs of processes that outlive us; a trial's log is masked before
// it is stored.
func hideSecrets(path string, from int64, secrets []string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("mask secrets in %s: %w", path, err)
	}
	err = hideIn(f, from, secrets)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("mask secrets in %s: %w", path, err)
	}
	return nil
}

func hideIn(f *os.File, from int64, secrets []string) error {
	const longest = 1 << 20 // of a line that is masked whole
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(f, longest)
	var masked bytes.Buffer
	mask := sglang.NewMaskWriter(&masked, secrets...)
	for {
		line, err := lines.ReadSlice('\n')
		masked.Reset()
		if _, err := mask.Write(line); err != nil {
			return err
		}
		if err := mask.Flush(); err != nil {
			return err
		}
		if !bytes.Equal(line, masked.Bytes()) {
			if _, err := f.WriteAt(sameLength(masked.Bytes(), line), from); err != nil {
				return err
			}
		}
		from += int64(len(line))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// sameLength fits a masked line into the place of the line it came from.
func sameLength(masked, line []byte) []byte {
	text := bytes.TrimRight(masked, "\r\n")
	end := line[len(bytes.TrimRight(line, "\r\n")):]
	room := len(line) - len(end)
	if len(text) > room { // a secret shorter than its mask
		text = text[:room]
	}
	return slices.Concat(text, bytes.Repeat([]byte(" "), room-len(text)), end)
}

// maskText masks a text that is shown: exact secrets first, then what gives itself away.
func maskText(text string, secrets []string) string {
	var out bytes.Buffer
	mask := sglang.NewMaskWriter(&out, secrets...)
	_, _ = io.WriteString(mask, text) // a buffer takes everything
	_ = mask.Flush()
	return out.String()
}
