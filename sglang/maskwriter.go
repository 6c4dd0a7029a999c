package sglang

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxMaskBuffer bounds what a MaskWriter keeps of a line that does not end.
const maxMaskBuffer = 64 << 10

// MaskWriter passes bytes on with secrets masked. It works line by line (a \r ends a line too, so
// that progress bars flow) and keeps the unfinished last line back until Flush.
type MaskWriter struct {
	w       io.Writer
	secrets []string // exact values, longest first
	buf     []byte
}

// NewMaskWriter returns a MaskWriter in front of w. secrets are values known beforehand (those of
// the study's secret variables); they are masked wherever they stand, on top of Mask's own rules.
// Values of fewer than 4 bytes are ignored: they would hit ordinary text.
func NewMaskWriter(w io.Writer, secrets ...string) *MaskWriter {
	known := slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return len(s) < 4 })
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) })
	return &MaskWriter{w: w, secrets: known}
}

// Write masks and passes on every finished line of p. It reports len(p) when the underlying writer
// took what was finished; the rest is kept.
func (m *MaskWriter) Write(p []byte) (int, error) {
	m.buf = append(m.buf, p...)
	end := bytes.LastIndexAny(m.buf, "\n\r") + 1
	if end == 0 && len(m.buf) > maxMaskBuffer {
		end = m.safeCut()
	}
	if end == 0 {
		return len(p), nil
	}
	if err := m.emit(end); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush passes on the unfinished last line.
func (m *MaskWriter) Flush() error {
	if len(m.buf) == 0 {
		return nil
	}
	return m.emit(len(m.buf))
}

func (m *MaskWriter) emit(end int) error {
	out := m.buf[:end]
	if m.suspect(out) {
		out = nil
		for line := range bytes.Lines(m.buf[:end]) {
			out = append(out, m.mask(line)...)
		}
	}
	_, err := m.w.Write(out)
	m.buf = append(m.buf[:0], m.buf[end:]...)
	if err != nil {
		return fmt.Errorf("write masked log: %w", err)
	}
	return nil
}

// suspect reports whether some line of text may hold a secret. Most pieces of a log hold none, and
// are passed on as they are.
func (m *MaskWriter) suspect(text []byte) bool {
	if secretRules.match(text) != 0 {
		return true
	}
	return slices.ContainsFunc(m.secrets, func(s string) bool { return bytes.Contains(text, []byte(s)) })
}

func (m *MaskWriter) mask(line []byte) []byte {
	for _, s := range m.secrets {
		if bytes.Contains(line, []byte(s)) {
			line = []byte(strings.ReplaceAll(string(line), s, masked))
		}
	}
	return MaskBytes(line)
}

// safeCut finds a place in an overlong line where cutting changes nothing for the masking: both
// halves masked alone give the same text as the whole. A secret and its name stay together.
func (m *MaskWriter) safeCut() int {
	const window = 512
	from := len(m.buf) - window
	for at := from; at > from-8*window; at-- {
		if m.buf[at] != ' ' && m.buf[at] != ',' {
			continue
		}
		left, right := m.buf[at-window:at+1], m.buf[at+1:]
		whole := m.mask(slices.Concat(left, right))
		if bytes.Equal(whole, slices.Concat(m.mask(left), m.mask(right))) {
			return at + 1
		}
	}
	return from // one word of kilobytes: no secret has that shape
}
