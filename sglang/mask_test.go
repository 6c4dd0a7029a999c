package sglang_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"sgtune/sglang"
)

func TestMask(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"--api-key s3cret --port 1", "--api-key *** --port 1"},
		{"--api-key=s3cret", "--api-key=***"},
		{"--admin-api-key 's3 cret' x", "--admin-api-key '***' x"},
		{"['serve', '--api-key', 's3cret', '--port', '1']", "['serve', '--api-key', '***', '--port', '1']"},
		{"ServerArgs(api_key='s3cret', admin_api_key=None, port=1)", "ServerArgs(api_key='***', admin_api_key=None, port=1)"},
		{"{'api_key': 's3cret', 'hf_token': \"q'q\", 'x': 1}", "{'api_key': '***', 'hf_token': \"***\", 'x': 1}"},
		{`{"api_key": "s3\"cret", "a": 1}`, `{"api_key": "***", "a": 1}`},
		{"'api_key': 's3cret", "'api_key': '***"},
		{"HF_TOKEN=abc python3", "HF_TOKEN=*** python3"},
		{"export WANDB_API_KEY='abc' AWS_SECRET_ACCESS_KEY=x DB_PASSWORD=y", "export WANDB_API_KEY='***' AWS_SECRET_ACCESS_KEY=*** DB_PASSWORD=***"},
		{"Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"},
		{"x-api-key: abc123", "x-api-key: ***"},
		{"curl http://me:pw@host/x", "curl http://me:***@host/x"},
		{"token hf_AbCdEf0123 and sk-abcdef0123456", "token *** and ***"},
		// Not secrets.
		{"#new-token: 3, #cached-token: 0, gen throughput (token/s): 1.77", "#new-token: 3, #cached-token: 0, gen throughput (token/s): 1.77"},
		{"'max_total_tokens': 5, 'tokenizer_path': 'x', 'api_key': None, 'skip_tokenizer_init': False", "'max_total_tokens': 5, 'tokenizer_path': 'x', 'api_key': None, 'skip_tokenizer_init': False"},
		{"hf_transfer is on, disk-usage high, task-force-one", "hf_transfer is on, disk-usage high, task-force-one"},
		{"monkey=banana keyboard='x' http://127.0.0.1:30000/health", "monkey=banana keyboard='x' http://127.0.0.1:30000/health"},
		{"", ""},
	} {
		got := sglang.Mask(tt.text)
		if got != tt.want {
			t.Errorf("Mask(%q)\n got %q\nwant %q", tt.text, got, tt.want)
		}
		if again := sglang.Mask(got); again != got {
			t.Errorf("Mask twice: %q became %q", got, again)
		}
	}
}

func TestMaskBytesKeepsRawBytes(t *testing.T) {
	t.Parallel()
	raw := []byte("\xff\xfe plain")
	if got := sglang.MaskBytes(raw); !bytes.Equal(got, raw) {
		t.Errorf("MaskBytes changed %q to %q", raw, got)
	}
	if got := sglang.MaskBytes([]byte("\xff --api-key abc \xfe\n")); string(got) != "\xff --api-key *** \xfe\n" {
		t.Errorf("MaskBytes gave %q", got)
	}
}

func TestMaskWriter(t *testing.T) {
	t.Parallel()
	const text = "start\nserver_args={'api_key': 'very-secret'}\n 1%\r 2%\rknown p4ssphrase here\nlast --api-key very-secret"
	for _, chunk := range []int{1, 3, 10, 1000} {
		var out bytes.Buffer
		w := sglang.NewMaskWriter(&out, "p4ssphrase", "x")
		for rest := text; rest != ""; {
			n := min(chunk, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if strings.Contains(out.String(), "last") {
			t.Errorf("chunks of %d: an unfinished line was passed on", chunk)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		want := "start\nserver_args={'api_key': '***'}\n 1%\r 2%\rknown *** here\nlast --api-key ***"
		if out.String() != want {
			t.Errorf("chunks of %d:\n got %q\nwant %q", chunk, out.String(), want)
		}
	}
}

// A line longer than the buffer is passed on in pieces; no cut may separate a secret from its name.
func TestMaskWriterLongLine(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	for in.Len() < 150<<10 {
		in.WriteString("prompt words --api-key very-secret, 'api_key': 'very-secret', hf_AbCdEf0123456789 ")
	}
	var out bytes.Buffer
	w := sglang.NewMaskWriter(&out)
	for rest := in.String(); rest != ""; {
		n := min(4093, len(rest))
		if _, err := w.Write([]byte(rest[:n])); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if out.Len() == 0 {
		t.Error("a line without end is kept back for ever")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "secret") || strings.Contains(s, "hf_") || s != sglang.Mask(in.String()) {
		t.Error("a secret was cut in two and got through")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestMaskWriterError(t *testing.T) {
	t.Parallel()
	w := sglang.NewMaskWriter(brokenWriter{})
	if _, err := w.Write([]byte("line\n")); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v, want the disk's", err)
	}
}

func BenchmarkMask(b *testing.B) {
	const line = "[2026-11-29 14:08:17 TP0] Decode batch, #running-req: 12, #token: 30012, token usage: 0.19, cuda graph: True, gen throughput (token/s): 412.33, #queue-req: 0"
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		sglang.Mask(line)
	}
}
