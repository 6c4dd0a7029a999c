package simulator

import (
	"fmt"
	"net/http"
	"time"
)

// answers is a handler of one of the OpenAI endpoints; parse reads its bodies.
func (s *server) answers(parse func(a *asker) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		buf, _ := buffers.Get().(*[]byte)
		defer buffers.Put(buf)
		if s.mediaType(w, r) {
			return
		}
		body, err := readBody(r, (*buf)[:0])
		*buf = body[:0]
		if err != nil {
			s.refuse(w, r, 0, badRequest("%v", err))
			return
		}
		a := newAsker(s.l.d, s.l.p.Vocab, body)
		if err := parse(a); err != nil {
			s.refuse(w, r, a.i, err)
			return
		}
		s.answer(w, r, &a.ask, buf)
	}
}

// answer runs one request that was understood.
func (s *server) answer(w http.ResponseWriter, r *http.Request, a *ask, buf *[]byte) {
	if text, pool := s.tooLong(a.prompt.Len, a.maxNew); text != "" {
		s.refuseLength(w, a, text, pool, buf)
		return
	}
	if a.rid == "" {
		n := uint64(s.ids.Add(1))
		a.rid = fmt.Sprintf("%016x%016x", mix(s.l.s.Sim.Seed*chainPrime+n), mix(n*chainSeed))
	}
	n, natural := s.answerLength(a)
	st := newStream(&Request{ID: a.rid, Prompt: a.prompt, MaxNew: n, Stream: a.stream}, a.stream)
	if !s.submit(st) {
		s.refuseBusy(w, a, buf)
		return
	}
	c := newChunks(&s.l.s, s.l.d, a, s.log.base.Add(time.Duration(s.clock.now()*float64(time.Second))).Unix())
	c.natural = natural
	if a.stream {
		s.stream(w, r, st, buf, c.events)
		return
	}
	s.whole(w, r, st, buf, c.whole)
}

// answerLength is how many tokens to make. The model stops by itself only where no limit was given and the end
// was not switched off (ignore_eos): after 64 to 1,087 tokens, always the same for a prompt.
func (s *server) answerLength(a *ask) (n int, natural bool) {
	switch rest := max(s.l.b.contextLen-a.prompt.Len-1, 1); {
	case a.maxNew > 0:
		return a.maxNew, false
	case a.ignoreEOS:
		return rest, false
	default:
		return min(max(64+int(mix(a.prompt.Tail^chainPrime)%1024), a.minNew), rest), true
	}
}

// refuseLength answers a request that is too long. Before 0.5.10 a stream has its headers out by then; later
// only when the scheduler says it.
func (s *server) refuseLength(w http.ResponseWriter, a *ask, text string, pool bool, buf *[]byte) {
	kind := "BadRequestError"
	if !a.stream || !pool && s.l.d.release >= r0510 {
		reply(w, http.StatusBadRequest, errorBody(text, kind, http.StatusBadRequest))
		return
	}
	if s.l.d.release >= r0510 {
		kind = "BAD_REQUEST"
	}
	openStream(w)
	*buf = streamError((*buf)[:0], text, kind, http.StatusBadRequest)
	_, _ = w.Write(*buf) // a client that hung up needs no answer
}

// refuseBusy answers a request for which the queue has no place.
func (s *server) refuseBusy(w http.ResponseWriter, a *ask, buf *[]byte) {
	if !a.stream {
		reply(w, http.StatusServiceUnavailable, errorBody(queueFull, "503", http.StatusServiceUnavailable))
		return
	}
	openStream(w)
	*buf = streamError((*buf)[:0], queueFull, "SERVICE_UNAVAILABLE", http.StatusServiceUnavailable)
	_, _ = w.Write(*buf) // a client that hung up needs no answer
}
