package sglang_test

import (
	"bytes"
	"errors"
	"io"
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
		// Arguments and variables.
		{"admin_api_key='s3 cret', ssl_keyfile_password='pw'", "admin_api_key='***', ssl_keyfile_password='***'"},
		{"--api-key=\"two words\" --port 1", "--api-key=\"***\" --port 1"},
		{`["serve", "--admin-api-key", "s3cret"]`, `["serve", "--admin-api-key", "***"]`},
		{"AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS_ACCESS_KEY_ID=*** AWS_SECRET_ACCESS_KEY=***"},
		{"'AWS_SESSION_TOKEN': 'abc', \"WANDB_API_KEY\": \"0123456789abcdef0123456789abcdef01234567\"", "'AWS_SESSION_TOKEN': '***', \"WANDB_API_KEY\": \"***\""},
		{"wandb login 0123456789abcdef0123456789abcdef01234567", "wandb login ***"},
		{"huggingface-cli login --token abcdefghijklmnop0123", "huggingface-cli login --token ***"},
		{`hicache_storage_backend_extra_config='{"access_key": "k3y", "secret_access_key": "s3"}'`, `hicache_storage_backend_extra_config='{"access_key": "***", "secret_access_key": "***"}'`},
		{`{\"api_key\": \"s3cret\", \"a\": 1}`, `{\"api_key\": \"***\", \"a\": 1}`},
		{"awsSecretAccessKey: abc", "awsSecretAccessKey: ***"},
		// Requests and URLs.
		{"headers={'authorization': 'Bearer abc.def', 'x-api-key': 'q'}", "headers={'authorization': 'Bearer ***', 'x-api-key': '***'}"},
		{"[(b'authorization', b'Bearer abc.def'), (b'x-api-key', b's3cret'), (b'host', b'h')]", "[(b'authorization', b'Bearer ***'), (b'x-api-key', b'***'), (b'host', b'h')]"},
		{"Authorization: plain-key-1", "Authorization: ***"},
		{"authorization=Basic dXNlcjpwdw==", "authorization=Basic ***"},
		{"GET https://a.blob.core.windows.net/x?sv=2024&sig=abc%2Fdef&se=1", "GET https://a.blob.core.windows.net/x?sv=2024&sig=***&se=1"},
		{"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc+def==", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=***"},
		{"https://s3/x?X-Amz-Credential=AKIA/1&X-Amz-Signature=abc", "https://s3/x?X-Amz-Credential=***&X-Amz-Signature=***"},
		{"https://maps/x?key=abc", "https://maps/x?key=***"},
		{"redis://:pw@h:6379/0 postgres://u:p%40@h/d", "redis://:***@h:6379/0 postgres://u:***@h/d"},
		// Shapes.
		{"AKIAIOSFODNN7EXAMPLE", "***"},
		{"AIzaSyA-1234567890abcdefghijklmnopqrstu ya29.a0AfH6SMBx-1234567890", "*** ***"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abc-def", "***"},
		{"nvapi-abcdefghijklmnop0123 github_pat_11ABCDEFG0123456789 glpat-abcdefghij0123456789", "*** *** ***"},
		// Not secrets.
		{"Decode batch, #running-req: 41, #token: 138312, token usage: 0.87", "Decode batch, #running-req: 41, #token: 138312, token usage: 0.87"},
		{"max_total_num_tokens=159277, eos_token_id=2, tokens: 5, token_ids=[1, 2], key_value_size=3", "max_total_num_tokens=159277, eos_token_id=2, tokens: 5, token_ids=[1, 2], key_value_size=3"},
		{"KeyError: 'model' is the key to the cache, no access: key missing", "KeyError: 'model' is the key to the cache, no access: key missing"},
		{"basic settings; the bearer of bad news", "basic settings; the bearer of bad news"},
		{"tokenizer_path='models/mla-moe-int4', token='a', 'token': 'hello'", "tokenizer_path='models/mla-moe-int4', token='a', 'token': 'hello'"},
		{"unauthorized, authorization failed for the request", "unauthorized, authorization failed for the request"},
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

// The logs that the classifier's tests read hold no secrets: masking leaves them as they are.
func TestMaskLeavesLogsAlone(t *testing.T) {
	t.Parallel()
	for _, path := range allLogs(t) {
		batches := 0
		for line := range bytes.Lines(ends(t, path)) {
			if bytes.Contains(line, []byte(" batch")) {
				if batches++; batches > 10 {
					continue // one is like another
				}
			}
			if got := sglang.MaskBytes(line); !bytes.Equal(got, line) && !bytes.Contains(line, []byte("s3cr3t")) {
				t.Errorf("%s: %.300q became %.300q", path, line, got)
			}
		}
	}
}

func TestMaskAllocations(t *testing.T) { // not parallel: it counts the process's allocations
	line := []byte(decodeLine)
	if n := testing.AllocsPerRun(100, func() { sglang.MaskBytes(line) }); n != 0 {
		t.Errorf("MaskBytes allocates %v times for a line without secrets", n)
	}
	if n := testing.AllocsPerRun(100, func() { sglang.Mask(decodeLine) }); n != 0 {
		t.Errorf("Mask allocates %v times for a line without secrets", n)
	}
}

func BenchmarkMask(b *testing.B) {
	b.SetBytes(int64(len(decodeLine)))
	b.ReportAllocs()
	for b.Loop() {
		sglang.Mask(decodeLine)
	}
}

// BenchmarkMaskWriter is what the evidence of a busy server costs.
func BenchmarkMaskWriter(b *testing.B) {
	log := decodeLog(1 << 20)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	w := sglang.NewMaskWriter(io.Discard, "p4ssphrase")
	for b.Loop() {
		if _, err := w.Write(log); err != nil {
			b.Fatal(err)
		}
	}
}
