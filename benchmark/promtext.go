package benchmark

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The text exposition format of Prometheus (version 0.0.4), as far as a reader of figures needs it. The
// official parser (prometheus/common/expfmt) brings protobuf along: measured, it makes a static program of
// 2.4 MB one of 8.2 MB, for a page of which we read a dozen lines. Types and help texts are comments here;
// lines whose name nobody wants are passed over unread, as most of a page of 100 kB to 1 MB is.

// promLabel is one label of a sample.
type promLabel struct{ name, value string }

// promSample is one line: a figure of one series.
type promSample struct {
	name   string
	labels []promLabel // in the page's order; valid until the next sample
	value  float64
}

// label is the value of a label, "" without it (Prometheus means the same by both).
func (s promSample) label(name string) string {
	for _, l := range s.labels {
		if l.name == name {
			return l.value
		}
	}
	return ""
}

// scanMetrics calls each for every sample whose name is wanted. A wanted line that breaks the format is an
// error with its number.
func scanMetrics(page []byte, wanted func(name []byte) bool, each func(promSample)) error {
	var labels []promLabel
	for n := 1; len(page) > 0; n++ {
		var line []byte
		line, page, _ = bytes.Cut(page, []byte("\n"))
		line = bytes.TrimLeft(bytes.TrimSuffix(line, []byte("\r")), " \t")
		end := 0
		for end < len(line) && nameByte(line[end], end == 0) {
			end++
		}
		if end == 0 || !wanted(line[:end]) { // a comment, an empty line, or of no interest
			continue
		}
		s := promSample{name: string(line[:end]), labels: labels[:0]}
		if err := s.rest(string(line[end:])); err != nil {
			return fmt.Errorf("line %d of the metrics, %q: %w", n, shorten(string(line), 100), err)
		}
		labels = s.labels
		each(s)
	}
	return nil
}

// nameByte reports whether a byte may stand in the name of a metric, or first in it.
func nameByte(b byte, first bool) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == ':' || !first && b >= '0' && b <= '9'
}

// rest reads what follows the name: labels, value, and a time stamp that is not needed.
func (s *promSample) rest(text string) error {
	text = strings.TrimLeft(text, " \t")
	if after, ok := strings.CutPrefix(text, "{"); ok {
		var err error
		if text, err = s.readLabels(after); err != nil {
			return err
		}
	}
	text, _, _ = strings.Cut(text, "#") // an exemplar of OpenMetrics
	fields := strings.Fields(text)
	if len(fields) < 1 || len(fields) > 2 {
		return errors.New("wanted a value, and at most a time stamp behind it")
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return fmt.Errorf("value %q is no number", shorten(fields[0], 40))
	}
	if len(fields) == 2 {
		if _, err := strconv.ParseFloat(fields[1], 64); err != nil {
			return fmt.Errorf("time stamp %q is no number", shorten(fields[1], 40))
		}
	}
	s.value = value
	return nil
}

// readLabels reads the labels up to and with the closing brace and returns what follows.
func (s *promSample) readLabels(text string) (string, error) {
	for {
		text = strings.TrimLeft(text, " \t")
		if after, ok := strings.CutPrefix(text, "}"); ok {
			return after, nil
		}
		end := 0
		for end < len(text) && nameByte(text[end], end == 0) && text[end] != ':' {
			end++
		}
		name := text[:end]
		text = strings.TrimLeft(text[end:], " \t")
		if name == "" || !strings.HasPrefix(text, "=") {
			return "", errors.New("wanted NAME=\"VALUE\" or }")
		}
		value, after, err := quoted(strings.TrimLeft(text[1:], " \t"))
		if err != nil {
			return "", fmt.Errorf("label %s: %w", name, err)
		}
		s.labels = append(s.labels, promLabel{strings.Clone(name), value})
		text = strings.TrimLeft(after, " \t")
		if after, ok := strings.CutPrefix(text, ","); ok { // one may also stand before the brace
			text = after
		} else if !strings.HasPrefix(text, "}") {
			return "", errors.New("wanted , or } after a label")
		}
	}
}

// quoted reads a value in quotes, with \\, \" and \n, and returns what follows.
func quoted(text string) (value, after string, err error) {
	if !strings.HasPrefix(text, `"`) {
		return "", "", errors.New("its value is not in quotes")
	}
	text = text[1:]
	if end := strings.IndexAny(text, `"\`); end >= 0 && text[end] == '"' { // the usual one
		return strings.Clone(text[:end]), text[end+1:], nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], nil
		case '\\':
			i++
			if i == len(text) {
				return "", "", errors.New("its value has no end")
			}
			switch text[i] {
			case 'n':
				b.WriteByte('\n')
			case '\\', '"':
				b.WriteByte(text[i])
			default: // kept, as Prometheus does
				b.WriteByte('\\')
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(text[i])
		}
	}
	return "", "", errors.New("its value has no end")
}
