package benchmark_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sgtune/benchmark"
)

func TestTargetCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, wrong string }{
		{"http://127.0.0.1:30000", ""},
		{"http://127.0.0.1:30000/", ""},
		{"https://llm.example", ""},
		{"http://[::1]:30000", ""},
		{"http://[fe80::1%25eth0]:30000/prefix", ""},
		{"http://host:8000/v1", ""},
		{"unix:///run/sglang.sock", ""},
		{"unix:/run/sglang.sock", ""},
		{"", "is empty"},
		{"127.0.0.1:30000", "has no http:// before it"},
		{"localhost:30000", "has no http:// before it"},
		{"host", "has no http:// before it"},
		{"http://", "names no host"},
		{"http://:30000", "names no host"},
		{"ftp://host:1", "has no scheme known here"},
		{"http://::1:30000", "needs brackets"},
		{"http://fe80::1:30000/x", "needs brackets"},
		{"http://host:", "names no port"},
		{"http://host:0", "has a port that is not"},
		{"http://host:70000", "has a port that is not"},
		{"http://host:port", "cannot be read"},
		{"http://host:1?key=secret", "has a query"},
		{"http://user:secret@host:1", "holds a user or a password"},
		{"http://user:secret@host:port", "cannot be read"},
		{"unix://run/sglang.sock", "begins at the root"},
		{"unix:sglang.sock", "begins at the root"},
		{"unix:///", "names no socket"},
		{"unix:///" + strings.Repeat("long/", 30) + "s.sock", "at most 107 bytes"},
	} {
		err := benchmark.Target{URL: c.url}.Check()
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", c.url, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%q: %v, want %q", c.url, err, c.wrong)
		case err != nil && (strings.ContainsAny(err.Error(), "\n") || len(err.Error()) > 400 || strings.Contains(err.Error(), "secret")):
			t.Errorf("%q: not one line without secrets: %v", c.url, err)
		}
	}
}

// ways are the three ways to reach one server that answers with what it was asked.
func ways(t *testing.T) map[string]benchmark.Target {
	t.Helper()
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"host":%q,"path":%q,"key":%q,"proto":%q}`, r.Host, r.URL.Path, r.Header.Get("Authorization"), r.Proto)
	})
	plain, secure := httptest.NewServer(echo), httptest.NewUnstartedServer(echo)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	socket := filepath.Join(t.TempDir(), "s.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	local := &httptest.Server{Listener: l, Config: &http.Server{Handler: echo}}
	local.Start()
	for _, s := range []*httptest.Server{plain, secure, local} {
		t.Cleanup(s.Close)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	trust, err := benchmark.LoadTLS(file, false)
	if err != nil {
		t.Fatal(err)
	}
	blind, err := benchmark.LoadTLS("", true)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(secure.URL, "https://"))
	elsewhere := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if network != "tcp" || addr != "llm.example:443" {
			return nil, fmt.Errorf("dialled %s %s", network, addr)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	}
	tunnel := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if network != "unix" || addr != "/far/away.sock" {
			return nil, fmt.Errorf("dialled %s %s", network, addr)
		}
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return map[string]benchmark.Target{
		"plain":              {URL: plain.URL + "/prefix"},
		"OpenAI base":        {URL: plain.URL + "/prefix/v1/"},
		"trusted":            {URL: secure.URL + "/prefix", TLS: trust},
		"any certificate":    {URL: secure.URL + "/prefix", TLS: blind},
		"tunnelled TLS":      {URL: "https://llm.example/prefix", TLS: &tls.Config{RootCAs: trust.RootCAs, ServerName: "example.com", MinVersion: tls.VersionTLS12}, Dial: elsewhere},
		"socket":             {URL: "unix://" + socket},
		"tunnel to a socket": {URL: "unix:///far/away.sock", Dial: tunnel},
	}
}

func TestCallsOverEveryTarget(t *testing.T) {
	t.Parallel()
	for name, target := range ways(t) {
		target.Header = http.Header{"Authorization": {"Bearer k"}}
		info, err := target.ServerInfo(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		path, host := "/prefix/server_info", strings.Split(strings.TrimPrefix(strings.TrimPrefix(target.URL, "http://"), "https://"), "/")[0]
		if strings.HasPrefix(target.URL, "unix:") {
			path, host = "/server_info", "localhost"
		}
		if info["path"] != path || info["host"] != host || info["key"] != "Bearer k" || info["proto"] != "HTTP/1.1" {
			t.Errorf("%s: asked %v; want path %s, host %s", name, info, path, host)
		}
		if status, err := target.Health(t.Context()); status != http.StatusOK || err != nil {
			t.Errorf("%s: health %d, %v", name, status, err)
		}
	}
}

// TestCallsGoNowhereElse: load must not follow a server to a machine that nobody named.
func TestCallsGoNowhereElse(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other machine was asked") }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL+"/server_info?token=secret", http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	_, err := benchmark.Target{URL: server.URL}.ServerInfo(t.Context())
	if err == nil || !strings.Contains(err.Error(), other.URL) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestTargetLoadTLS(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := benchmark.LoadTLS(empty, false); err == nil || !strings.Contains(err.Error(), "PEM") {
		t.Errorf("empty: %v", err)
	}
	if _, err := benchmark.LoadTLS(empty+".none", false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// TestTargetCarriesLoad: replayed requests go the same ways as the small calls.
func TestTargetCarriesLoad(t *testing.T) {
	t.Parallel()
	fake := &fakeServer{}
	secure := httptest.NewTLSServer(fake.handler())
	t.Cleanup(secure.Close)
	socket := filepath.Join(t.TempDir(), "s.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	local := &httptest.Server{Listener: l, Config: &http.Server{Handler: fake.handler()}}
	local.Start()
	t.Cleanup(local.Close)
	blind, err := benchmark.LoadTLS("", true)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]benchmark.Target{"TLS": {URL: secure.URL, TLS: blind}, "socket": {URL: "unix://" + socket}} {
		feed := benchmark.NewFeed(lengths(8, 16, 4), 0, 8, "", testPalette())
		r, err := benchmark.Run(t.Context(), target, feed, benchmark.Options{Concurrency: 4, Requests: 8}, nil)
		if err != nil || r.Requests.OK != 8 || r.Tokens.Got != 32 {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}
