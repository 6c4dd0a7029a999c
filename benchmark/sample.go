package benchmark

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
)

// SampleWriter writes finished requests as evidence, one compact JSON object per line:
//
//	{"row":7,"at":"2026-01-01T22:00:00.5Z","lag_ms":0.1,"ttft_ms":220.4,"e2e_ms":1900.2,"prompt":1096,"cached":64,"output":300,"wanted":300}
//
// at is the intended send time, lag_ms the delay of the real one; a later turn of a conversation has "turn",
// a request that was tried again "attempts", a failed one "failed" and "error" too. All in host time. The first error is kept and returned by Flush. Write is not safe for
// concurrent use; Run calls it for one request at a time.
type SampleWriter struct {
	out  *bufio.Writer
	line []byte
	err  error
}

// NewSampleWriter returns a writer of samples to w.
func NewSampleWriter(w io.Writer) *SampleWriter {
	return &SampleWriter{out: bufio.NewWriterSize(w, 64<<10)}
}

// Write adds one request.
func (s *SampleWriter) Write(r Request) {
	if s.err != nil {
		return
	}
	s.line = appendSample(s.line[:0], r)
	if _, err := s.out.Write(s.line); err != nil {
		s.err = fmt.Errorf("write samples: %w", err)
	}
}

// Flush writes what is buffered and returns the first error of all writes.
func (s *SampleWriter) Flush() error {
	if s.err != nil {
		return s.err
	}
	if err := s.out.Flush(); err != nil {
		s.err = fmt.Errorf("write samples: %w", err)
	}
	return s.err
}

func appendSample(b []byte, r Request) []byte {
	b = append(b, `{"row":`...)
	b = strconv.AppendInt(b, int64(r.Row), 10)
	b = append(b, `,"at":"`...)
	b = r.Intended.AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	b = appendMs(b, "lag_ms", r.Sent.Sub(r.Intended))
	b = appendMs(b, "ttft_ms", r.TTFT)
	b = appendMs(b, "e2e_ms", r.E2E)
	for _, f := range []struct {
		key   string
		value int
	}{{"prompt", r.Prompt}, {"cached", r.Cached}, {"output", r.Output}, {"wanted", r.Wanted}} {
		b = appendKey(b, f.key)
		b = strconv.AppendInt(b, int64(f.value), 10)
	}
	if r.Turn > 0 {
		b = strconv.AppendInt(appendKey(b, "turn"), int64(r.Turn), 10)
	}
	if r.Attempts > 1 {
		b = strconv.AppendInt(appendKey(b, "attempts"), int64(r.Attempts), 10)
	}
	if r.Failed != "" {
		b = appendText(appendKey(b, "failed"), r.Failed)
		b = appendText(appendKey(b, "error"), r.Error)
	}
	return append(b, '}', '\n')
}

func appendKey(b []byte, key string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

func appendMs(b []byte, key string, d time.Duration) []byte {
	return strconv.AppendFloat(appendKey(b, key), ms(d), 'f', 3, 64)
}

func appendText(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // a string always has a JSON form
	return append(b, quoted...)
}
