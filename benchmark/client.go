package benchmark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// Request is one finished request: facts only. Times are host time, offsets from Intended.
type Request struct {
	Row         int
	Turn        int           // of its conversation, from 0
	Attempts    int           // tries, 1 without retries
	Intended    time.Time     // when it should have been sent
	Sent        time.Time     // when it was
	TTFT        time.Duration // intended to first token, 0 when none came
	E2E         time.Duration // intended to last byte
	InputWanted int           // prompt tokens asked for, 0 for texts of unknown length
	Prompt      int           // prompt tokens as the server counted
	Cached      int           // of those, served from cache
	Output      int           // completion tokens as the server counted
	Wanted      int           // completion tokens asked for; of an open prompt what came
	Failed      string        // "" or one of: refused reset cut_stream http_status stream_error wrong_tokens timeout
	Error       string
}

// gap is the time between two events, shared by the tokens of the second: Tokens gaps of Ms each.
type gap struct {
	Ms     float32
	Tokens uint32
}

// answer is a request with what only the level needs.
type answer struct {
	Request
	cut  bool   // the level ended and took it away: neither ok nor failed
	gaps []gap  // valid until the sender's next request
	said Answer // only of a prompt that has a Follow
}

// senderConfig is what all clients of a level have in common.
type senderConfig struct {
	clock      Clock
	endpoint   string        // "" = generate
	model      string        // for OpenAI's endpoints, "" = default
	continuous bool          // ask for usage in every event
	timeout    time.Duration // real, of one request, 0 = none
	keepGaps   bool
	// tokens is told of new tokens once for each read from the connection; prompt comes with the first one, or
	// with the last where the endpoint tells it only then.
	tokens func(at time.Time, output, prompt int)
}

// sender is one client: it owns a connection and sends one request after the other.
type sender struct {
	target     Target
	clock      Clock
	endpoint   string
	model      []byte // quoted
	continuous bool
	timeout    time.Duration
	keepGaps   bool
	tokens     func(at time.Time, output, prompt int)

	conn *conn
	idle time.Time // when it was last used, real
	used bool      // it has carried a request

	head   []byte // of every request, up to the value of Content-Length
	out    []byte
	body   []byte
	stream decoder
	reader reader
	gaps   []gap
	said   spoken
	fresh  [2]int // output, prompt tokens of this read, not told yet
}

// newSender returns a client of the target. It has no connection yet.
func newSender(target Target, c senderConfig) (*sender, error) {
	if c.endpoint == "" {
		c.endpoint = EndpointGenerate
	}
	path := endpointPaths[c.endpoint]
	if path == "" {
		return nil, fmt.Errorf("no endpoint is called %q; there are %s, %s and %s", c.endpoint, EndpointGenerate, EndpointCompletions, EndpointChat)
	}
	req, err := target.request(http.MethodPost, path)
	if err != nil {
		return nil, err
	}
	if c.model == "" {
		c.model = "default"
	}
	if c.tokens == nil {
		c.tokens = func(time.Time, int, int) {}
	}
	return &sender{
		target: target, clock: c.clock, endpoint: c.endpoint, model: appendString(nil, c.model), continuous: c.continuous,
		timeout: c.timeout, keepGaps: c.keepGaps, tokens: c.tokens,
		head: requestHead(req), reader: newReader(c.endpoint),
	}, nil
}

// connect dials ahead, so that the first request does not wait for it.
func (s *sender) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	c, err := s.target.dial(ctx)
	if err != nil {
		return err
	}
	s.conn, s.used, s.idle = newConn(c, s.clock), false, time.Now()
	return nil
}

// close ends the connection.
func (s *sender) close() {
	if s.conn != nil {
		_ = s.conn.net.Close() // nothing is expected from it any more
		s.conn = nil
	}
}

// send replays one prompt and reads its whole answer.
func (s *sender) send(ctx context.Context, p Prompt, intended time.Time) answer {
	a := answer{Request: Request{
		Row: p.Row.Number, Turn: p.Turn, Attempts: 1, Intended: intended, Sent: intended, Wanted: p.OutputTokens, InputWanted: p.InputTokens,
	}}
	s.gaps = s.gaps[:0]
	err := p.Row.Err // of a file that changed since it was read
	var body []byte
	if err == nil {
		body, err = s.appendBody(s.body[:0], p)
	}
	if err != nil {
		err = failure{failedStream, err}
	} else {
		s.body = body
		err = s.exchange(ctx, p, &a)
		if len(s.out) > mostKept {
			s.out, s.body = nil, nil
		}
	}
	if a.E2E == 0 {
		a.E2E = s.clock.Now().Sub(intended)
	}
	s.settle(ctx, p, &a, err)
	a.gaps = s.gaps
	return a
}

// idleLimit is how long a connection must have lain idle for a hang-up to be blamed on that: servers hang up on
// idle ones (SGLang's after five seconds). Where that cannot be seen beforehand, the request is sent again.
const idleLimit = 200 * time.Millisecond

// exchange sends the body and reads the answer, on a new connection where the old one has gone.
func (s *sender) exchange(ctx context.Context, p Prompt, a *answer) error {
	waited := time.Since(s.idle)
	if s.conn != nil && (s.used || waited > idleLimit) && s.conn.hungUp() {
		s.close()
	}
	again := s.conn != nil && s.used && waited > idleLimit && !s.conn.tellsHangUp()
	heard, err := s.once(ctx, p, a)
	if err != nil && !heard && again && ctx.Err() == nil && hungUpError(err) {
		// It hung up on the idle connection just as the request was sent (RFC 9112, 9.3.1).
		_, err = s.once(ctx, p, a)
	}
	return err
}

func hungUpError(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// once is one try. heard tells whether any byte of an answer came.
func (s *sender) once(ctx context.Context, p Prompt, a *answer) (heard bool, err error) {
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, errTimeout)
		defer cancel()
	}
	if err := s.connect(ctx); err != nil {
		a.Sent = s.clock.Now()
		return false, timedOut(ctx, failure{failedRefused, err})
	}
	stop := s.conn.interruptible(ctx)
	a.Sent = s.clock.Now()
	heard, err = s.talk(p, a)
	undisturbed := stop()
	s.used, s.idle = true, time.Now()
	if !undisturbed || !s.conn.idle() {
		s.close()
	}
	return heard, timedOut(ctx, err)
}

// timedOut names an error after the request's own time limit where that is the reason.
func timedOut(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return errTimeout
	}
	return err
}

// settle turns an error into a kind, and a wrong length into an error.
func (s *sender) settle(ctx context.Context, p Prompt, a *answer, err error) {
	switch {
	case errors.Is(err, errTimeout):
		a.Failed, a.Error = failedTimeout, errTimeout.Error()
	case err != nil && ctx.Err() != nil:
		a.cut = true
	case err != nil:
		a.Failed, a.Error = kindOf(err), shorten(err.Error(), 300)
	case p.Open && a.Output > 0:
		a.Wanted = a.Output
	case a.Output != a.Wanted:
		a.Failed = failedWrongTokens
		a.Error = fmt.Sprintf("row %d: %d tokens came, %d were asked for", a.Row, a.Output, a.Wanted)
	}
	if err == nil && p.Follow != nil {
		a.said = Answer{Text: string(s.said.text), IDs: s.said.ids}
	}
}

// talk writes the request and reads the answer: status, events, final figures.
func (s *sender) talk(p Prompt, a *answer) (heard bool, err error) {
	c := s.conn
	c.start, c.end, c.finished = 0, 0, false // of the answer before
	s.out = append(strconv.AppendInt(append(s.out[:0], s.head...), int64(len(s.body)), 10), "\r\n\r\n"...)
	s.out = append(s.out, s.body...)
	if _, err := c.net.Write(s.out); err != nil {
		return s.unsent(err)
	}
	if err := c.head(); err != nil {
		return c.end > 0, failure{headKind(err), fmt.Errorf("wait for the answer: %w", err)}
	}
	if c.status != http.StatusOK {
		return true, s.refusal()
	}
	if c.media != "" {
		return true, failure{failedStream, fmt.Errorf("%w but %s: %s", errNotStream, shorten(c.media, 60), excerpt(c.excerpt()))}
	}
	return true, s.events(p, a)
}

// mostKept is the largest request whose buffers a client keeps for the next one.
const mostKept = 1 << 20

// headKind sorts the errors of an answer that did not begin.
func headKind(err error) string {
	if errors.Is(err, errNotHTTP) || errors.Is(err, errHeadTooLong) {
		return failedStream
	}
	return kindOf(err)
}

// events reads the answer's events to the end of its body.
func (s *sender) events(p Prompt, a *answer) error {
	c := s.conn
	s.stream.reset(c)
	s.reader.reset()
	s.said.reset()
	previous, booked := a.Intended, c.at
	defer func() { s.tell(booked) }()
	done := false
	for {
		event, err := s.stream.next()
		if err != nil {
			if done || errors.Is(err, io.EOF) && c.finished && s.reader.complete() {
				break
			}
			return streamEnd(err)
		}
		event = s.reader.dense(event)
		if c.at != booked {
			s.tell(booked)
			booked = c.at
		}
		if len(event) == len(doneMark) && bytes.Equal(event, doneMark) {
			done = true
			break
		}
		if isError(event) {
			return failure{failedStream, errors.New(streamError(event))}
		}
		if p.Follow != nil {
			s.said.add(event)
		}
		if n := s.reader.tokens(event, a.Output); n > a.Output {
			s.arrived(a, event, n, c.at, previous)
			previous = c.at
		}
	}
	// The chunk that ends the body follows [DONE]. It is the last byte, and only a body read to its end
	// frees the connection for the next request. A body that only the connection's end ends is complete by now.
	if !done || c.body != upToClose {
		if err := c.rest(); err != nil {
			return streamEnd(err)
		}
	}
	a.E2E = c.at.Sub(a.Intended)
	return s.conclude(a, booked)
}

// conclude takes the final figures from the answer's last event, which came at that time. Tokens without any text
// (a lone end mark, a call of a tool without arguments) are only known from it.
func (s *sender) conclude(a *answer, at time.Time) error {
	end, err := s.reader.end()
	if err != nil {
		return failure{failedStream, err}
	}
	if end.Completion != a.Output && !s.reader.counted && a.Output > 0 {
		s.spread(a.Output, end.Completion)
	}
	if a.Output == 0 && end.Completion > 0 {
		a.TTFT = at.Sub(a.Intended)
	}
	s.fresh[0] += end.Completion - a.Output
	if a.Prompt == 0 {
		s.fresh[1] += end.Prompt
	}
	a.Output, a.Prompt, a.Cached = end.Completion, end.Prompt, end.Cached
	return nil
}

// arrived books the tokens of one event.
func (s *sender) arrived(a *answer, event []byte, n int, at, previous time.Time) {
	fresh := n - a.Output
	if a.Output == 0 {
		a.TTFT = at.Sub(a.Intended)
		if s.endpoint == EndpointGenerate {
			a.Prompt = s.reader.prompt(event)
			s.fresh[1] += a.Prompt
		}
		if fresh > 1 && s.keepGaps { // the tokens that came with the first one
			s.gaps = append(s.gaps, gap{0, uint32(fresh - 1)})
		}
	} else if s.keepGaps {
		s.gaps = append(s.gaps, gap{float32(ms(at.Sub(previous)) / float64(fresh)), uint32(fresh)})
	}
	a.Output = n
	s.fresh[0] += fresh
}

// tell passes on the tokens of one read.
func (s *sender) tell(at time.Time) {
	if s.fresh != [2]int{} {
		s.tokens(at, s.fresh[0], s.fresh[1])
		s.fresh = [2]int{}
	}
}

// spread shares out the tokens of an answer whose events did not say how many they carry: evenly.
func (s *sender) spread(events, tokens int) {
	if events <= 1 {
		return
	}
	told, gaps := 0, tokens-1
	for i := range s.gaps {
		upTo := gaps * (i + 1) / len(s.gaps)
		n := upTo - told
		told = upTo
		s.gaps[i].Tokens = uint32(max(0, n))
		if n > 1 {
			s.gaps[i].Ms /= float32(n)
		}
	}
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
