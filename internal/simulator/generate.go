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
	wanted := 0
	if g.limited {
		wanted = g.maxNew
	}
	if text, _ := s.tooLong(g.prompt.Len, wanted); text != "" {
		replyError(w, http.StatusBadRequest, text)
		return
	}
	if g.rid == "" {
		g.rid = "sim-" + strconv.FormatInt(s.ids.Add(1), 10)
	}
	st := newStream(&Request{ID: g.rid, Prompt: g.prompt, MaxNew: max(g.maxNew, 1), Stream: g.stream}, g.stream)
	if !s.submit(st) {
		replyError(w, http.StatusServiceUnavailable, queueFull)
		return
	}
	e := generateEvents{answer: newAnswer(g.prompt), rid: g.rid, shape: s.l.d.generateShape(g.stream && s.l.s.Incremental, g.stream), words: g.hasText}
	if g.stream {
		s.stream(w, r, st, buf, e.event)
		return
	}
	s.whole(w, r, st, buf, e.result)
}

// queueFull is the scheduler's answer above --max-queued-requests.
const queueFull = "The request queue is full."

// tooLong is what SGLang says of a prompt of n tokens that asks for wanted more, 0 = no limit given: "" is fine;
// pool means that the scheduler says it, which a stream hears only after its headers.
func (s *server) tooLong(n, wanted int) (text string, pool bool) {
	limit := s.l.b.contextLen
	room := limit - n // for the answer
	if s.l.d.release <= r055 {
		room--
	}
	switch {
	case n >= limit:
		return fmt.Sprintf("The input (%d tokens) is longer than the model's context length (%d tokens).", n, limit), false
	case wanted > room:
		return fmt.Sprintf("Requested token count exceeds the model's maximum context length of %d tokens. You requested a total of %d tokens: %d tokens from the input messages and %d tokens "+
			"for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.", limit, n+wanted, n, wanted), false
	case n > s.maxInput():
		return fmt.Sprintf("Input length (%d tokens) exceeds the maximum allowed length (%d tokens). Use a shorter input or enable --allow-auto-truncate.", n, s.maxInput()), true
	}
	return "", false
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
	s.countAbort()
	s.eng.abort(func(q *Request) bool { return q == st.r })
}

// countAbort counts one call for an abort. Callers hold s.mu.
func (s *server) countAbort() {
	if s.book != nil {
		s.book.aborts++
	}
}

// whole waits for the end of a request and answers with what result makes of it.
func (s *server) whole(w http.ResponseWriter, r *http.Request, st *stream, buf *[]byte, result func(b []byte, p progress) []byte) {
	select {
	case <-st.ready:
		*buf = result((*buf)[:0], st.get())
		reply(w, http.StatusOK, *buf)
	case <-r.Context().Done():
		s.drop(st)
	}
}

// stream sends what events makes of each progress until the answer is complete, then [DONE].
func (s *server) stream(w http.ResponseWriter, r *http.Request, st *stream, buf *[]byte, events func(b []byte, p progress) []byte) {
	flusher := openStream(w)
	for {
		select {
		case <-st.ready:
		case <-r.Context().Done():
			s.drop(st)
			return
		}
		p := st.get()
		b := events((*buf)[:0], p)
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

// openStream sends the headers of an event stream.
func openStream(w http.ResponseWriter) http.Flusher {
	h := w.Header()
	h["Content-Type"] = eventStream
	h["Cache-Control"] = noCache
	w.WriteHeader(http.StatusOK)
	flusher, _ := w.(http.Flusher)
	return flusher
}

var (
	eventStream = []string{"text/event-stream; charset=utf-8"}
	noCache     = []string{"no-cache"}
)
