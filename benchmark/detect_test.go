package benchmark_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/internal/freeport"
)

const (
	sglangInfo = `{"version":"0.5.23","model_path":"/models/tiny","served_model_name":"tiny","context_length":null,"max_total_num_tokens":246116,
		"enable_cache_report":true,"incremental_streaming_output":false,"stream_interval":1,"skip_tokenizer_init":false,
		"disaggregation_mode":"null","is_embedding":false,"api_key":"secret","internal_states":[{}]}`
	sglangModels = `{"object":"list","data":[{"id":"tiny","object":"model","owned_by":"sglang","root":"tiny","max_model_len":32768},{"id":"adapter","max_model_len":null}]}`
	vllmModels   = `{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","owned_by":"vllm","max_model_len":40960}]}`
)

// answers serves fixed answers by path ("405" = status alone) and refuses to be asked to generate.
func answers(t *testing.T, byPath map[string]string) (benchmark.Target, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		if r.Method != http.MethodGet || slices.Contains([]string{"/generate", "/v1/completions", "/v1/chat/completions", "/health", "/health_generate"}, r.URL.Path) {
			t.Errorf("asked %s %s", r.Method, r.URL.Path)
		}
		answer, known := byPath[r.URL.Path]
		if !known {
			answer = byPath["*"]
		}
		switch answer {
		case "":
			http.NotFound(w, r)
		case "401", "403", "405", "500", "503":
			status := map[string]int{"401": 401, "403": 403, "405": 405, "500": 500, "503": 503}[answer]
			http.Error(w, "no", status)
		case "hang":
			<-r.Context().Done()
		default:
			_, _ = w.Write([]byte(answer))
		}
	}))
	t.Cleanup(server.Close)
	return benchmark.Target{URL: server.URL}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked)
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answers map[string]string
		want    benchmark.Server
	}{
		{
			"SGLang",
			map[string]string{"/server_info": sglangInfo, "/v1/models": sglangModels, "/tokenize": "405"},
			benchmark.Server{
				Kind: benchmark.KindSGLang, Product: "sglang", Version: "0.5.23", Model: "tiny", Models: []string{"tiny", "adapter"},
				ContextTokens: 32768, MaxTotalTokens: 246116, Tokenize: true, CacheReport: true, StreamInterval: 1,
			},
		},
		{
			"older SGLang",
			map[string]string{
				"/get_server_info": `{"version":"0.4.6.post5","model_path":"/m","context_length":4096,"stream_output":true,"disable_radix_cache":true,"internal_states":[]}`,
				"/v1/models":       `{"data":[{"id":"/m","owned_by":"sglang"}]}`,
			},
			benchmark.Server{
				Kind: benchmark.KindSGLang, Product: "sglang", Version: "0.4.6.post5", Model: "/m", Models: []string{"/m"}, ContextTokens: 4096,
				Incremental: true, CacheOff: true,
			},
		},
		{
			"SGLang behind a router",
			map[string]string{"/get_model_info": `{"model_path":"/m","is_generation":true}`},
			benchmark.Server{Kind: benchmark.KindSGLang, Model: "/m"},
		},
		{
			"embedding model",
			map[string]string{"/model_info": `{"model_path":"/m","is_generation":false}`},
			benchmark.Server{Kind: benchmark.KindSGLang, Model: "/m", Notes: []string{"the server runs an embedding model, which generates nothing"}},
		},
		{
			"vLLM",
			map[string]string{"/v1/models": vllmModels, "/version": `{"version":"0.11.0"}`, "/tokenize": "405", "/server_info": `{"vllm_config":"..."}`},
			benchmark.Server{
				Kind: benchmark.KindOpenAI, Product: "vllm", Version: "0.11.0", Model: "Qwen/Qwen3-8B", Models: []string{"Qwen/Qwen3-8B"},
				ContextTokens: 40960, Tokenize: true,
			},
		},
		{
			"bench mock",
			map[string]string{
				"/v1/models":   `{"object":"list","data":[{"id":"mock","object":"model","created":1750000000,"owned_by":"mock","root":"mock","max_model_len":131072}]}`,
				"/server_info": `{"version":"mock","internal_states":[{"last_gen_throughput":0}]}`,
			},
			benchmark.Server{Kind: benchmark.KindSGLang, Product: "mock", Version: "mock", Model: "mock", Models: []string{"mock"}, ContextTokens: 131072},
		},
		{"nothing known", nil, benchmark.Server{Kind: benchmark.KindUnknown}},
		{"a page for everything", map[string]string{"*": "<html>hello</html>"}, benchmark.Server{Kind: benchmark.KindUnknown}},
		{"numbers for everything", map[string]string{"*": "[1]"}, benchmark.Server{Kind: benchmark.KindUnknown}},
		{
			"a gateway that refuses what it does not know",
			map[string]string{"*": "403", "/v1/models": `{"data":[{"id":"big"}]}`},
			benchmark.Server{Kind: benchmark.KindOpenAI, Model: "big", Models: []string{"big"}},
		},
		{
			"still loading",
			map[string]string{"/v1/models": "503"},
			benchmark.Server{Kind: benchmark.KindUnknown, Notes: []string{"GET /v1/models answered 503: no"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			target, _ := answers(t, c.answers)
			got, err := benchmark.Detect(t.Context(), target)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestDetectAsksLittle(t *testing.T) {
	t.Parallel()
	target, asked := answers(t, map[string]string{"/server_info": sglangInfo, "/v1/models": sglangModels})
	if _, err := benchmark.Detect(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/server_info", "/v1/models", "/tokenize"}, asked()); diff != "" {
		t.Error(diff)
	}
}

func TestDetectEndpoint(t *testing.T) {
	t.Parallel()
	lengths, words := benchmark.Row{InputTokens: 8}, benchmark.Row{Text: "hello"}
	chat := benchmark.Row{Turns: []benchmark.Turn{{OutputTokens: 4}}}
	named := benchmark.Row{Text: "hello", Path: "/v1/completions"}
	for _, c := range []struct {
		kind benchmark.ServerKind
		row  benchmark.Row
		want string
	}{
		{benchmark.KindSGLang, lengths, "generate"},
		{benchmark.KindSGLang, words, "generate"},
		{benchmark.KindSGLang, chat, "chat"},
		{benchmark.KindSGLang, named, "completions"},
		{benchmark.KindOpenAI, lengths, "completions"},
		{benchmark.KindOpenAI, words, "completions"},
		{benchmark.KindOpenAI, chat, "chat"},
		{benchmark.KindUnknown, lengths, ""},
		{benchmark.KindUnknown, chat, ""},
	} {
		if got, err := (benchmark.Server{Kind: benchmark.KindSGLang, IDsOnly: true}).Endpoint(c.row); got != "generate" || err != nil {
			t.Errorf("without a tokenizer: %q, %v", got, err)
		}
		got, err := benchmark.Server{Kind: c.kind}.Endpoint(c.row)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s %+v: %q, %v; want %q", c.kind, c.row, got, err, c.want)
		}
	}
}

// TestDetectUnreachable: each way to name a server wrongly says what to do.
func TestDetectUnreachable(t *testing.T) {
	t.Parallel()
	gone := fmt.Sprint("http://127.0.0.1:", freeport.For(t))
	locked, _ := answers(t, map[string]string{"*": "401"})
	withKey := locked
	withKey.Header = http.Header{"Authorization": {"Bearer wrong"}}
	plain := httptest.NewServer(http.NotFoundHandler())
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it says that it was spoken to in plain http
	secure.StartTLS()
	moved := httptest.NewServer(http.RedirectHandler("https://elsewhere.example/server_info", http.StatusMovedPermanently))
	for _, s := range []*httptest.Server{plain, secure, moved} {
		t.Cleanup(s.Close)
	}
	silent := hangUp(t, nil)
	alert := hangUp(t, []byte("\x15\x03\x01\x00\x02\x02\x46"))
	blind, _ := benchmark.LoadTLS("", true)
	for _, c := range []struct {
		name   string
		target benchmark.Target
		why    benchmark.Why
		says   string
	}{
		{"refused", benchmark.Target{URL: gone}, benchmark.WhyRefused, "is the server up"},
		{"no socket", benchmark.Target{URL: "unix://" + filepath.Join(t.TempDir(), "none.sock")}, benchmark.WhyNoSocket, "no such socket"},
		{"no key", locked, benchmark.WhyKey, "SGTUNE_API_KEY"},
		{"wrong key", withKey, benchmark.WhyKey, "is it the right one"},
		{"https to http", benchmark.Target{URL: strings.Replace(plain.URL, "http:", "https:", 1), TLS: blind}, benchmark.WhyNoTLS, "write http://"},
		{"https to a server that hangs up on it", benchmark.Target{URL: strings.Replace(httpOnly(t), "http:", "https:", 1), Header: http.Header{"Authorization": {"Bearer secret"}}}, benchmark.WhyNoTLS, "write http://"},
		{"http to https", benchmark.Target{URL: strings.Replace(secure.URL, "https:", "http:", 1)}, benchmark.WhyWantsTLS, "write https://"},
		{"unknown authority", benchmark.Target{URL: secure.URL}, benchmark.WhyCertificate, "--cacert"},
		{"moved", benchmark.Target{URL: moved.URL}, benchmark.WhyMoved, "elsewhere.example"},
		{"hangs up", benchmark.Target{URL: silent}, benchmark.WhyOther, "no answer that can be read"},
		{"answers a TLS alert", benchmark.Target{URL: alert}, benchmark.WhyWantsTLS, "write https://"},
		{"no HTTP", benchmark.Target{URL: hangUp(t, []byte("SSH-2.0-OpenSSH_9.9\r\n"))}, benchmark.WhyOther, "no answer that can be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := benchmark.Detect(t.Context(), c.target)
			var u *benchmark.Unreachable
			if !errors.As(err, &u) || u.Why != c.why || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s: %s", err, c.why, c.says)
			}
			if err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 || strings.Contains(err.Error(), "wrong")) {
				t.Errorf("not one line without secrets: %v", err)
			}
		})
	}
}

// httpOnly is a server that closes connections that do not begin with a request.
func httpOnly(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				if r.Header.Get("Authorization") != "" {
					t.Error("the key went unencrypted")
				}
				_, _ = c.Write([]byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// hangUp is a server that answers everything with the same bytes and is gone.
func hangUp(t *testing.T, answer []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = c.Read(make([]byte, 1024))
			_, _ = c.Write(answer)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return "http://" + l.Addr().String()
}

func TestDetectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	target, _ := answers(t, map[string]string{"*": "hang"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := benchmark.Detect(ctx, target); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
