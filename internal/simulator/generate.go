package simulator

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// maxInput is SGLang's max_req_input_len: what fits both the context and the pool.
func (s *server) maxInput() int { return min(s.l.b.contextLen, s.l.b.Tokens) - 6 }

// buffers are reused for request bodies and events.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

// generate is POST /generate: text or input_ids, streaming or not.
func (s *server) generate(w http.ResponseWriter, r *http.Request) {
	buf, _ := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	body, err := readBody(r, (*buf)[:0])
	*buf = body[:0]
	if err != nil {
		replyError(w, http.StatusBadRequest, err.Error())
		return
	}
	g, err := parseGenerate(body, s.l.p.Vocab)
	if err != nil {
		replyError(w, http.StatusBadRequest, err.Error())
		return
	}
	if g.prompt.Len >= s.l.b.contextLen {
		replyError(w, http.StatusBadRequest, fmt.Sprintf("The input (%d tokens) is longer than the model's context length (%d tokens).", g.prompt.Len, s.l.b.contextLen))
		return
	}
	if g.prompt.Len > s.maxInput() {
		replyError(w, http.StatusBadRequest, fmt.Sprintf("Input length (%d tokens) exceeds the maximum allowed length (%d tokens). Use a shorter input or enable --allow-auto-truncate.", g.prompt.Len, s.maxInput()))
		return
	}
	if g.rid == "" {
		g.rid = "sim-" + strconv.FormatInt(s.ids.Add(1), 10)
	}
	st := newStream(&Request{ID: g.rid, Prompt: g.prompt, MaxNew: max(g.maxNew, 1)}, g.stream)
	if !s.submit(st) {
		replyError(w, http.StatusServiceUnavailable, "The request queue is full.")
		return
	}
	a := newAnswer(g.prompt)
	if g.stream {
		s.stream(w, r, st, &a, &g, buf)
		return
	}
	select {
	case <-st.ready:
		*buf = a.event((*buf)[:0], g.rid, true, st.get())
		reply(w, http.StatusOK, *buf)
	case <-r.Context().Done():
		s.drop(st)
	}
}

// readBody reads a whole body into b; the server never trusts a length above 64 MiB.
func readBody(r *http.Request, b []byte) ([]byte, error) {
	const limit = 64 << 20
	if n := r.ContentLength; n > limit {
		return b, fmt.Errorf("body of %d bytes is too large", n)
	} else if n > int64(cap(b)) {
		b = make([]byte, 0, n+512)
	}
	for len(b) <= limit {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, fmt.Errorf("read body: %w", err)
		}
	}
	return b, fmt.Errorf("body is larger than %d bytes", limit)
}

// submit queues a request at the present simulated time; false when --max-queued-requests is reached.
func (s *server) submit(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit := s.l.s.MaxQueued; limit > 0 && len(s.eng.waiting) >= limit {
		return false
	}
	s.streams = append(s.streams, st)
	s.submitLocked(st.r)
	return true
}

// submitLocked hands a request to the engine and wakes an idle pace loop.
func (s *server) submitLocked(r *Request) {
	r.Arrival = s.clock.now()
	idle := s.eng.step.kind == stepNone
	s.eng.Submit(r)
	if idle {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// drop aborts the request of a client that hung up.
func (s *server) drop(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eng.abort(func(q *Request) bool { return q == st.r })
}

// stream sends cumulative events until the answer is complete.
func (s *server) stream(w http.ResponseWriter, r *http.Request, st *stream, a *answer, g *genRequest, buf *[]byte) {
	h := w.Header()
	h["Content-Type"] = eventStream
	h["Cache-Control"] = noCache
	flusher, _ := w.(http.Flusher)
	w.WriteHeader(http.StatusOK)
	for {
		select {
		case <-st.ready:
		case <-r.Context().Done():
			s.drop(st)
			return
		}
		p := st.get()
		b := append((*buf)[:0], "data: "...)
		b = append(a.event(b, g.rid, g.hasText, p), "\n\n"...)
		if p.done {
			b = append(b, "data: [DONE]\n\n"...)
		}
		*buf = b
		if _, err := w.Write(b); err != nil {
			s.drop(st)
			return
		}
		if p.done {
			return // the rest is flushed by net/http together with the end of the body
		}
		flusher.Flush()
	}
}

var (
	eventStream = []string{"text/event-stream; charset=utf-8"}
	noCache     = []string{"no-cache"}
)
