package web_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"sgtune/web"
)

const token = "correct horse battery staple"

func TestHeadersOnEveryResponse(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	style := staticPath(t, h, "style.css")
	for _, path := range []string{"/", "/studies/night", "/studies/nobody", style, "/api/v1/studies", "/metrics", "/nothing"} {
		header := get(t, h, path).Header()
		csp := header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "script-src 'self'", "base-uri 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: CSP %q has no %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("%s: CSP %q", path, csp)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if cached := header.Get("Cache-Control"); (cached == "no-store") == strings.HasPrefix(path, "/static/") {
			t.Errorf("%s: Cache-Control %q", path, cached)
		}
	}
}

// staticPath is the address of an embedded file as the log-in page names it.
func staticPath(t *testing.T, h http.Handler, name string) string {
	t.Helper()
	found := regexp.MustCompile(`"(/static/[0-9a-f]{12}/` + regexp.QuoteMeta(name) + `)"`).FindStringSubmatch(get(t, h, "/login").Body.String())
	if found == nil {
		t.Fatalf("no page names %s", name)
	}
	return found[1]
}

func TestHost(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{Addr: "gpu-box:8090", Hosts: []string{"tunnel"}})
	loop, lan := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7)}
	tests := []struct {
		host  string
		bound *net.TCPAddr
		ok    bool
	}{
		{"localhost:8090", loop, true},
		{"LOCALHOST", loop, true},
		{"127.0.0.1:9000", loop, true}, // a forwarded port
		{"[::1]:8090", loop, true},
		{"gpu-box:8090", lan, true},
		{"tunnel:1", lan, true},
		{"192.0.2.7:8090", lan, true},
		{"192.0.2.8:8090", lan, false},
		{"127.0.0.1:8090", lan, false},
		{"evil.example", loop, false},
		{"evil.example:8090", loop, false},
		{"localhost.evil.example", loop, false},
		{"192.0.2.7", loop, false},
		{"", loop, false},
	}
	for _, test := range tests {
		w := get(t, h, "/", func(r *http.Request) {
			r.Host = test.host
			*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, test.bound))
		})
		if (w.Code == http.StatusOK) != test.ok || (!test.ok && w.Code/100 != 4) {
			t.Errorf("host %q on %s: %d", test.host, test.bound, w.Code)
		}
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{Token: token})
	tests := []struct {
		name   string
		header http.Header
		ok     bool
	}{
		{"own page", http.Header{"Origin": {"http://localhost:8090"}}, true},
		{"own page, new browser", http.Header{"Origin": {"http://localhost:8090"}, "Sec-Fetch-Site": {"same-origin"}}, true},
		{"no browser, token", http.Header{"Authorization": {"Bearer " + token}}, true},
		{"nothing", http.Header{}, false},
		{"foreign", http.Header{"Origin": {"http://evil.example"}}, false},
		{"other port", http.Header{"Origin": {"http://localhost:9999"}}, false},
		{"null", http.Header{"Origin": {"null"}}, false},
		{"foreign with token", http.Header{"Origin": {"http://evil.example"}, "Authorization": {"Bearer " + token}}, false},
		{"cross site", http.Header{"Origin": {"http://localhost:8090"}, "Sec-Fetch-Site": {"cross-site"}}, false},
		{"two", http.Header{"Origin": {"http://localhost:8090", "http://evil.example"}}, false},
		{"file", http.Header{"Origin": {"file://"}}, false},
	}
	for _, test := range tests {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
			body := strings.NewReader(url.Values{"token": {token}}.Encode())
			r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost:8090/login", body)
			r.Header = test.header.Clone()
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			switch {
			case !test.ok && w.Code != http.StatusForbidden,
				test.ok && method == http.MethodPost && w.Code != http.StatusSeeOther,
				test.ok && method != http.MethodPost && w.Code != http.StatusMethodNotAllowed:
				t.Errorf("%s %s: %d", method, test.name, w.Code)
			}
		}
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{Token: token})
	for _, path := range []string{"/", "/studies/night", "/api/v1/studies", "/metrics", "/events?study=night", "/nothing"} {
		for _, authorization := range []string{"", "Bearer wrong", "Bearer " + token + "x", "Basic " + token, token, "Bearer "} {
			w := get(t, h, path, func(r *http.Request) { r.Header.Set("Authorization", authorization) })
			if w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "night") {
				t.Errorf("%s with %q: %d\n%s", path, authorization, w.Code, w.Body)
			}
		}
	}
	if w := get(t, h, "/api/v1/studies", func(r *http.Request) { r.Header.Set("Authorization", "bearer "+token) }); w.Code != http.StatusOK {
		t.Errorf("with the token: %d", w.Code)
	}
	for _, path := range []string{"/login", staticPath(t, h, "style.css")} {
		if w := get(t, h, path); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{Token: token})
	login := func(given string) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost:8090/login", strings.NewReader(url.Values{"token": {given}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://localhost:8090")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	wrong := login("wrong")
	defer func() { _ = wrong.Body.Close() }()
	if wrong.StatusCode != http.StatusUnauthorized || len(wrong.Cookies()) != 0 {
		t.Errorf("wrong token: %d, %v", wrong.StatusCode, wrong.Cookies())
	}
	right := login(token)
	defer func() { _ = right.Body.Close() }()
	if right.StatusCode != http.StatusSeeOther || len(right.Cookies()) != 1 {
		t.Fatalf("right token: %d, %v", right.StatusCode, right.Cookies())
	}
	cookie := right.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || strings.Contains(cookie.Value, token) {
		t.Errorf("cookie %+v", cookie)
	}
	if w := get(t, h, "/", func(r *http.Request) { r.AddCookie(cookie) }); w.Code != http.StatusOK {
		t.Errorf("with the cookie: %d", w.Code)
	}
	other := web.New(sample(), web.Options{Token: "another"})
	if w := get(t, other, "/", func(r *http.Request) { r.AddCookie(cookie) }); w.Code != http.StatusUnauthorized {
		t.Errorf("another token's cookie: %d", w.Code)
	}
}

// start serves the pages on a free port until the test ends.
func start(t *testing.T, h http.Handler) (addr string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	addr, wait, err := web.Serve(ctx, "127.0.0.1:0", h)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	stop = func() error { cancel(); return wait() }
	t.Cleanup(func() { cancel() })
	return addr, stop
}

func TestServe(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	addr, stop := start(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next, wait, err := web.Serve(ctx, addr, h)
	if err != nil {
		t.Fatal(err)
	}
	if next == addr {
		t.Errorf("two servers on %s", addr)
	}
	for _, a := range []string{addr, next} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", a, response.StatusCode)
		}
	}
	cancel()
	if err := wait(); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	open := web.New(sample(), web.Options{})
	for addr, want := range map[string]string{
		"0.0.0.0:0": "SGTUNE_TOKEN", ":0": "SGTUNE_TOKEN", "192.0.2.1:0": "SGTUNE_TOKEN", "[::]:0": "SGTUNE_TOKEN", "gpu-box:0": "SGTUNE_TOKEN",
		"127.0.0.1": "is not an address", "127.0.0.1:http": "is not an address", "127.0.0.1:99999": "is not an address",
	} {
		_, _, err := web.Serve(t.Context(), addr, open)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
	}
	closed := web.New(sample(), web.Options{Token: token})
	if _, _, err := web.Serve(t.Context(), "192.0.2.1:0", closed); err == nil || strings.Contains(err.Error(), "SGTUNE_TOKEN") {
		t.Errorf("an address that is not ours, with a token: %v", err)
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	m := sample()
	addr, stop := start(t, web.New(m, web.Options{Poll: 5 * time.Millisecond}))
	ask := func(query, last string) *bufio.Reader {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/events?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
			t.Fatalf("%d %s", response.StatusCode, kind)
		}
		return bufio.NewReader(response.Body)
	}
	first := func(stream *bufio.Reader) string {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	current := ask("study=night&after=7", "")
	missed := ask("study=night&after=7", "5")
	if line := first(missed); line != "id: 7\n" {
		t.Errorf("a reader that missed changes got %q", line)
	}
	m.touch()
	if line := first(current); line != "id: 8\n" {
		t.Errorf("after a change: %q", line)
	}
	if err := stop(); err != nil { // with two streams open
		t.Errorf("stop: %v", err)
	}
}
