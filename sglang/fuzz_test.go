package sglang_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func FuzzParseLine(f *testing.F) {
	for _, name := range []string{"01-ok-mla-tp8-hicache.log", "sglang-cpu-0.5.23.log", "sglang-cpu-0.5.23-kv-nonpositive.log"} {
		for i, line := range strings.Split(string(readLog(f, name)), "\n") {
			if i%5 == 0 && len(line) < 2000 {
				f.Add(line)
			}
		}
	}
	f.Add("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1e999 GiB")
	f.Fuzz(func(t *testing.T, line string) {
		ev, ok := sglang.ParseLine(line)
		if ok != (ev.Kind != "") || len(ev.Text) > 400 {
			t.Errorf("%q: %+v, %v", line, ev, ok)
		}
	})
}

func FuzzReader(f *testing.F) {
	log := readLog(f, "sglang-cpu-0.5.23.log")
	f.Add(log[len(log)-3000:], 100)
	f.Add([]byte("a\r\nTraceback (most recent call last):\n  File \"x\", line 1, in capture\nException: y\r\r\n\xff"), 3)
	f.Fuzz(func(t *testing.T, log []byte, chunk int) {
		whole := digest(log, max(1, len(log)))
		pieces := digest(log, 1+max(0, chunk%997))
		if d := cmp.Diff(whole, pieces); d != "" {
			t.Errorf("chunking changes the result:\n%s", d)
		}
		if whole.Facts.Bytes != int64(len(log)) {
			t.Errorf("%d bytes counted, %d fed", whole.Facts.Bytes, len(log))
		}
	})
}

func FuzzMask(f *testing.F) {
	for _, text := range []string{
		"--api-key s3cret", "api_key='s3cret'", "'hf_token': 'x', 'b': None", "HF_TOKEN=hf_abc123def", "Authorization: Bearer abc.def",
		`"password": "a\"b"`, "https://u:p@h/", "sk-abcdef123456 gh", "['--admin-api-key', 'q']",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := sglang.Mask(text)
		if twice := sglang.Mask(once); twice != once {
			t.Errorf("not idempotent:\n%q\n%q\n%q", text, once, twice)
		}
		if got := sglang.MaskBytes([]byte(text)); !bytes.Equal(got, []byte(once)) {
			t.Errorf("MaskBytes %q, Mask %q", got, once)
		}
	})
}
