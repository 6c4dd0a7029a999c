package benchmark

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// Request is one finished request: facts only. Times are host time, offsets from Intended.
type Request struct {
	Row      int
	Intended time.Time     // when it should have been sent
	Sent     time.Time     // when it was
	TTFT     time.Duration // intended to first token, 0 when none came
	E2E      time.Duration // intended to last byte
	Prompt   int           // prompt tokens as the server counted
	Cached   int           // of those, served from cache
	Output   int           // completion tokens as the server counted
	Wanted   int           // completion tokens asked for
	Failed   string        // "" or one of: refused reset cut_stream http_status stream_error wrong_tokens timeout
	Error    string
}

// gap is the time between two events, shared by the tokens of the second: Tokens gaps of Ms each.
type gap struct {
	Ms     float32
	Tokens uint32
}

// answer is a request with what only the level needs.
type answer struct {
	Request
	cut  bool  // the level ended and took it away: neither ok nor failed
	gaps []gap // valid until the sender's next request
}

// sender is one client: it sends one request after the other and reuses what it can.
type sender struct {
	http     http.RoundTripper
	template *http.Request
	clock    Clock
	timeout  time.Duration // real, 0 = none
	keepGaps bool
	// tokens is told of every event with new tokens; prompt is set with the first one only.
	tokens func(at time.Time, output, prompt int)

	body   []byte
	stream decoder
	last   []byte // the last event so far
	gaps   []gap
}

// newSender returns a client of the target; its template request is cloned for each row.
func newSender(target Target, transport http.RoundTripper, clock Clock) (*sender, error) {
	template, err := target.request(http.MethodPost, "/generate")
	if err != nil {
		return nil, err
	}
	return &sender{
		http:     transport,
		template: template,
		clock:    clock,
		tokens:   func(time.Time, int, int) {},
	}, nil
}

// send replays one prompt and reads its whole answer.
func (s *sender) send(ctx context.Context, p Prompt, intended time.Time) answer {
	a := answer{Request: Request{Row: p.Row.Number, Intended: intended, Wanted: p.OutputTokens}}
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, errTimeout)
		defer cancel()
	}
	s.body = appendBody(s.body[:0], p)
	body := newSentBody(s.body, s.clock, intended)
	req := s.template.WithContext(ctx)
	req.Body, req.ContentLength = body, int64(len(s.body))
	resp, err := s.http.RoundTrip(req)
	if err == nil {
		err = s.read(resp, &a)
	}
	a.Sent = body.sentAt()
	if !body.done.Load() {
		s.body = nil // the transport may still be reading it
	}
	if a.E2E == 0 {
		a.E2E = s.clock.Now().Sub(intended)
	}
	s.settle(ctx, &a, err)
	a.gaps = s.gaps
	return a
}

// settle turns an error into a kind, and a wrong length into an error.
func (s *sender) settle(ctx context.Context, a *answer, err error) {
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errTimeout):
		a.Failed = failedTimeout
		a.Error = errTimeout.Error()
	case err != nil && ctx.Err() != nil:
		a.cut = true
	case err != nil:
		a.Failed, a.Error = kindOf(err), shorten(err.Error(), 300)
	case a.Output != a.Wanted:
		a.Failed = failedWrongTokens
		a.Error = fmt.Sprintf("row %d: %d tokens came, %d were asked for", a.Row, a.Output, a.Wanted)
	}
}

// read takes the answer apart: status, events, final figures.
func (s *sender) read(resp *http.Response, a *answer) error {
	defer resp.Body.Close() //nolint:errcheck // read to the end or given up
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // the status alone is the failure
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
		return failure{failedStatus, fmt.Errorf("status %d: %s", resp.StatusCode, excerpt(text))}
	}
	s.stream.reset(resp.Body)
	s.last, s.gaps = s.last[:0], s.gaps[:0]
	previous := a.Intended
	for {
		event, err := s.stream.next()
		if err != nil {
			return streamEnd(err)
		}
		at := s.clock.Now()
		if bytes.Equal(event, doneMark) {
			break
		}
		if bytes.HasPrefix(event, errorMark) {
			return failure{failedStream, errors.New(streamError(event))}
		}
		s.last = append(s.last[:0], event...)
		if n, ok := number(event, keyCompletion); ok && n > a.Output {
			s.arrived(a, event, n, at, previous)
			previous = at
		}
	}
	// The chunk that ends the body follows [DONE]. It is the last byte, and only a body read to its end
	// frees the connection for the next request.
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return streamEnd(err)
	}
	a.E2E = s.clock.Now().Sub(a.Intended)
	end, err := decodeFinal(s.last)
	if err != nil {
		return failure{failedStream, err}
	}
	a.Output, a.Prompt, a.Cached = end.Completion, end.Prompt, end.Cached
	return nil
}

// arrived books the tokens of one event.
func (s *sender) arrived(a *answer, event []byte, n int, at, previous time.Time) {
	fresh, prompt := n-a.Output, 0
	if a.Output == 0 {
		a.TTFT = at.Sub(a.Intended)
		a.Prompt, _ = number(event, keyPrompt)
		prompt = a.Prompt
	} else if s.keepGaps {
		s.gaps = append(s.gaps, gap{float32(ms(at.Sub(previous)) / float64(fresh)), uint32(fresh)})
	}
	a.Output = n
	s.tokens(at, fresh, prompt)
}

// appendBody writes the JSON of one request. Output lengths are forced: ignore_eos and the wanted
// length; temperature 0 keeps the work the same in every trial.
func appendBody(b []byte, p Prompt) []byte {
	if p.IDs != nil {
		b = append(b, `{"input_ids":[`...)
		for i, id := range p.IDs {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(id), 10)
		}
		b = append(b, ']')
	} else {
		text, _ := json.Marshal(p.Text) // a string always has a JSON form
		b = append(append(b, `{"text":`...), text...)
	}
	b = append(b, `,"sampling_params":{"max_new_tokens":`...)
	b = strconv.AppendInt(b, int64(p.OutputTokens), 10)
	return append(b, `,"temperature":0,"ignore_eos":true},"stream":true}`...)
}

// sentBody is a request body that notes when the transport took its first byte: the true send time,
// after waiting for a connection and for the CPU. It is read on another goroutine.
type sentBody struct {
	bytes    *bytes.Reader
	clock    Clock
	intended time.Time
	lag      atomic.Int64 // nanoseconds of host time + 1, 0 = not sent
	done     atomic.Bool  // closed: the transport is through with it
}

func newSentBody(b []byte, clock Clock, intended time.Time) *sentBody {
	return &sentBody{bytes: bytes.NewReader(b), clock: clock, intended: intended}
}

func (s *sentBody) Read(p []byte) (int, error) {
	if s.lag.Load() == 0 {
		s.lag.Store(max(0, int64(s.clock.Now().Sub(s.intended))) + 1)
	}
	return s.bytes.Read(p)
}

func (s *sentBody) Close() error {
	s.done.Store(true)
	return nil
}

// sentAt is the send time; of a request that never left, the time it gave up.
func (s *sentBody) sentAt() time.Time {
	if lag := s.lag.Load(); lag > 0 {
		return s.intended.Add(time.Duration(lag - 1))
	}
	return s.clock.Now()
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
