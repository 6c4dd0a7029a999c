package benchmark

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Limits of the small calls, in real time. A caller that has less time says so by its context.
const (
	callTimeout   = 30 * time.Second
	healthTimeout = 25 * time.Second // SGLang answers 503 itself after 20 s of silence
	maxCallBody   = 1 << 20
	maxInfoBody   = 8 << 20 // /server_info of 0.5.23 has 556 keys
)

// adminPaths are the calls of ours that a server with an admin key wants that key for.
var adminPaths = map[string]bool{"/flush_cache": true, "/abort_request": true}

// request makes a request for a path of the target, without context and body.
func (t Target) request(method, path string) (*http.Request, error) {
	a, err := t.address()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(method, a.base.JoinPath(path).String(), nil) //nolint:noctx // callers add theirs by WithContext
	if err != nil {
		return nil, fmt.Errorf("address of the server %q: %w", withoutSecrets(t.URL), err)
	}
	header := t.Header
	if t.Admin != nil && adminPaths[path] {
		header = t.Admin
	}
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// call makes one request on a connection of its own and reads at most limit bytes of the answer. An answer
// that sends us elsewhere is an error that says where to (errRedirect): load goes only where it was asked for.
func (t Target) call(ctx context.Context, method, path string, body []byte, limit int64) (status int, answer []byte, err error) {
	req, err := t.request(method, path)
	if err != nil {
		return 0, nil, err
	}
	req = req.WithContext(ctx)
	if body != nil {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	transport := t.transport()
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read as far as wanted
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode/100 == 3 {
		return resp.StatusCode, nil, fmt.Errorf("%s %s: %w, to %q", method, path, errRedirect, withoutSecrets(to))
	}
	answer, err = io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return resp.StatusCode, answer, fmt.Errorf("%s %s: read answer: %w", method, path, err)
	}
	return resp.StatusCode, answer, nil
}

// errRedirect is wrapped by the error of a call that the server sends elsewhere.
var errRedirect = errors.New("the server sends us elsewhere")

// post is call with a limit of its own that insists on 200.
func (t Target) post(ctx context.Context, path string, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	status, answer, err := t.call(ctx, http.MethodPost, path, []byte(body), maxCallBody)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("POST %s answered %d: %s", path, status, excerpt(answer))
	}
	return answer, nil
}

// FlushCache empties the device and the host radix cache. SGLang refuses (400) while any request is
// running or queued, which is an error here.
func (t Target) FlushCache(ctx context.Context) error {
	if _, err := t.post(ctx, "/flush_cache", ""); err != nil {
		return fmt.Errorf("flush cache: %w", err)
	}
	return nil
}

// AbortAll ends every running and queued request of the server.
func (t Target) AbortAll(ctx context.Context) error {
	if _, err := t.post(ctx, "/abort_request", `{"abort_all":true}`); err != nil {
		return fmt.Errorf("abort all requests: %w", err)
	}
	return nil
}

// Health returns the status code of /health. The body is never looked at: SGLang's is empty.
func (t Target) Health(ctx context.Context) (status int, err error) {
	return t.HealthAt(ctx, "/health")
}

// HealthAt is Health of another endpoint: up to 0.4.9 only /health_generate tests anything.
func (t Target) HealthAt(ctx context.Context, path string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	status, _, err = t.call(ctx, http.MethodGet, path, nil, 0)
	return status, err
}

// ServerInfo returns /server_info (older versions: /get_server_info). It goes through the scheduler and
// hangs when that is stuck, hence its limit.
func (t Target) ServerInfo(ctx context.Context) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	path := "/server_info"
	status, answer, err := t.call(ctx, http.MethodGet, path, nil, maxInfoBody)
	if err == nil && status == http.StatusNotFound {
		path = "/get_server_info"
		status, answer, err = t.call(ctx, http.MethodGet, path, nil, maxInfoBody)
	}
	if err != nil {
		return nil, fmt.Errorf("server info: %w", err)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("server info: GET %s answered %d: %s", path, status, excerpt(answer))
	}
	var info map[string]any
	if err := json.Unmarshal(answer, &info); err != nil {
		return nil, fmt.Errorf("server info: GET %s: %w", path, err)
	}
	return info, nil
}

// OneToken asks for one real token and insists on getting it: the witness of readiness that cannot be
// wrong. It sends text, because the palette is not known before the server answers.
func (t Target) OneToken(ctx context.Context) error {
	answer, err := t.post(ctx, "/generate", `{"text":"Hi","sampling_params":{"max_new_tokens":1,"temperature":0,"ignore_eos":true}}`)
	if err != nil {
		return fmt.Errorf("one token: %w", err)
	}
	end, err := decodeFinal(answer)
	if err != nil {
		return fmt.Errorf("one token: %w", err)
	}
	if end.Completion < 1 {
		return fmt.Errorf("one token: the server answered with %d", end.Completion)
	}
	return nil
}
