package sglang_test

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

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

// FuzzParse: whatever the bytes and however they are cut, a Reader never panics, counts every byte,
// keeps bounded facts, and says the same with and without events.
func FuzzParse(f *testing.F) {
	for i, path := range allLogs(f) {
		log, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		const most = 3000
		f.Add(log[max(0, len(log)-most):], uint16(i))
		f.Add(log[len(log)/3:min(len(log), len(log)/3+most)], uint16(7*i))
	}
	for _, tt := range wrappers {
		f.Add([]byte(tt.line(exceptionOf3)+"\n"+tt.line(frameExtend)+"\r\n"+tt.line(oomOf3)), uint16(5))
	}
	f.Add([]byte("{\"log\":\"a\\u00e9\\ud83d\\ude00\\r50%|\",\"stream\":\"stderr\"}\n2026-11-29T14:08:17Z stderr P x"), uint16(3))
	f.Add([]byte("[2026-11-29 14:08:17] Receive: obj=GenerateReqInput(text='a\nKilled\nb', x=1)\n"+decodeLine+"["+decodeLine), uint16(3))
	f.Fuzz(func(t *testing.T, log []byte, chunk uint16) {
		whole := digest(log, max(1, len(log)))
		pieces := digest(log, 1+int(chunk%997))
		if !reflect.DeepEqual(whole, pieces) {
			t.Errorf("chunking changes the result:\n%s", cmp.Diff(whole, pieces, allFields))
		}
		r := sglang.NewReader()
		if _, err := r.Write(log); err != nil {
			t.Error(err)
		}
		r.Close()
		facts := r.Facts()
		if !reflect.DeepEqual(whole.Facts, facts) {
			t.Errorf("without events the facts differ:\n%s", cmp.Diff(whole.Facts, facts, allFields))
		}
		if facts.Bytes != int64(len(log)) || facts.Lines != countLines(log) {
			t.Errorf("%d bytes in %d lines counted, %d in %d fed", facts.Bytes, facts.Lines, len(log), countLines(log))
		}
		if len(facts.Fatal) > 64 || len(facts.Notes) > 64 {
			t.Errorf("%d fatal events and %d notes kept", len(facts.Fatal), len(facts.Notes))
		}
		for _, ev := range facts.Last {
			if len(ev.Text) > 400 || !utf8.ValidString(ev.Text) || ev.Line < 1 || ev.Line > facts.Lines || ev.Offset >= facts.Bytes {
				t.Errorf("event out of bounds: %+v", ev)
			}
		}
		sglang.ParseLine(string(log))
	})
}

// countLines counts physical lines, a last one without \n too.
func countLines(log []byte) int {
	n := bytes.Count(log, []byte("\n"))
	if len(log) > 0 && log[len(log)-1] != '\n' {
		n++
	}
	return n
}

func FuzzReader(f *testing.F) {
	log := readLog(f, "sglang-cpu-0.5.23.log")
	f.Add(log[len(log)-3000:], 100)
	f.Add([]byte("a\r\nTraceback (most recent call last):\n  File \"x\", line 1, in capture\nException: y\r\r\n\xff"), 3)
	f.Fuzz(func(t *testing.T, log []byte, chunk int) {
		whole := digest(log, max(1, len(log)))
		pieces := digest(log, 1+max(0, chunk%997))
		if d := cmp.Diff(whole, pieces, allFields); d != "" {
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
		`(b'authorization', b'Bearer x1')`, "?sig=abc&key=d", "wandb login 0123456789abcdef0", `{\"api_key\": \"q\"}`, "Basic QWxh AKIAIOSFODNN7EXAMPLE token='abcdefghijklmnop0'",
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
