package benchmark

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
)

// Kinds of failed requests, a closed list.
const (
	failedRefused     = "refused"      // no connection
	failedReset       = "reset"        // the connection broke
	failedCut         = "cut_stream"   // the answer ended before it was complete
	failedStatus      = "http_status"  // another status than 200
	failedStream      = "stream_error" // an error event, an aborted request, an event that cannot be read
	failedWrongTokens = "wrong_tokens" // not as many tokens as asked for
	failedTimeout     = "timeout"      // nothing complete within Options.Timeout
)

var (
	errTimeout = errors.New("the request took longer than its time limit")
	errCut     = errors.New("the load level is over")
)

// failure is an error whose kind is known where it happens.
type failure struct {
	kind string
	err  error
}

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// streamEnd sorts the errors of a body that should have gone on.
func streamEnd(err error) error {
	switch {
	case errors.Is(err, errEventTooLong):
		return failure{failedStream, err}
	case errors.Is(err, syscall.ECONNRESET):
		return failure{failedReset, err}
	}
	return failure{failedCut, fmt.Errorf("the stream ended before [DONE]: %w", err)}
}

// kindOf sorts the errors of sending.
func kindOf(err error) string {
	var known failure
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.As(err, &known):
		return known.kind
	case errors.Is(err, syscall.ECONNREFUSED):
		return failedRefused
	case errors.As(err, &op) && op.Op == "dial":
		return failedRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failedReset
	case errors.As(err, &timeout) && timeout.Timeout():
		return failedTimeout
	}
	return failedReset
}

// unsent is why a request could not be written to its end. A server that wants no more of it, for one because the
// prompt is too long, may have said so before it hung up (RFC 9112, 9.5).
func (s *sender) unsent(err error) (heard bool, _ error) {
	c := s.conn
	if !hungUpError(err) || c.head() != nil || c.status == http.StatusOK {
		return c.end > 0, failure{kindOf(err), fmt.Errorf("send the request: %w", err)}
	}
	c.reusable = false // the rest of the request is missing
	return true, s.refusal()
}

// refusal is an answer of another status than 200. Once read to its end it leaves the connection good.
func (s *sender) refusal() error {
	c := s.conn
	text := excerpt(c.excerpt())
	for passed := 0; !c.finished && passed < mostHead; { // a longer one is not worth the connection
		run, err := c.run()
		if passed += len(run); err != nil {
			break
		}
	}
	if c.status/100 == 3 && c.location != "" {
		text = fmt.Sprintf("%s, to %q", errRedirect, withoutSecrets(c.location))
	}
	return failure{failedStatus, fmt.Errorf("status %d: %s", c.status, text)}
}
