package benchmark

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// Why says why a server cannot be used as it was named.
type Why string

// The reasons, a closed list.
const (
	WhyRefused     Why = "refused"     // nobody listens there
	WhyNoSocket    Why = "no_socket"   // no such socket, or no right to it
	WhyName        Why = "name"        // the host's name is not known
	WhyTimeout     Why = "timeout"     // no connection within the limit
	WhyWantsTLS    Why = "wants_tls"   // http:// to a server that speaks https
	WhyNoTLS       Why = "no_tls"      // https:// to a server that does not speak it
	WhyCertificate Why = "certificate" // its certificate is not trusted, or for another name
	WhyKey         Why = "key"         // it refuses our api key, or wants one
	WhyMoved       Why = "moved"       // it sends us elsewhere
	WhyOther       Why = "other"
)

// Unreachable is a server that cannot be used as it was named. Its text is one line: where, what is wrong,
// what to do.
type Unreachable struct {
	URL  string // without secrets
	Why  Why
	Err  error // what a call failed with, nil where it was answered
	what string
}

func (u *Unreachable) Error() string { return u.URL + ": " + u.what }
func (u *Unreachable) Unwrap() error { return u.Err }

// keyRefused is the answer 401 or 403.
func keyRefused(t Target, path string, status int, answer string) *Unreachable {
	what := fmt.Sprintf("wants an api key (%s answered %d); put it into the environment variable SGTUNE_API_KEY", path, status)
	if t.Header.Get("Authorization") != "" {
		what = fmt.Sprintf("refuses our api key (%s answered %d); is it the right one, and for this server?", path, status)
	}
	if status == http.StatusForbidden && answer != "" {
		what += " It says: " + answer
	}
	return &Unreachable{URL: withoutSecrets(t.URL), Why: WhyKey, what: what}
}

// languageTimeout bounds the trial of the other language, in real time.
const languageTimeout = 3 * time.Second

func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// unreachable turns the error of a first call into what it means. Whether http and https were confused is
// tried out where the error does not tell: that fails in many ways.
func unreachable(ctx context.Context, t Target, err error) *Unreachable {
	u := &Unreachable{URL: withoutSecrets(t.URL), Err: err}
	u.Why, u.what = explain(t, err)
	switch {
	case u.Why != WhyOther:
	case t.wantsTLS(ctx):
		return wantsTLS(t, err)
	case t.wantsPlain(ctx):
		u.Why, u.what = WhyNoTLS, noTLS
	}
	return u
}

const noTLS = "does not speak TLS; write http:// instead of https://"

func wantsTLS(t Target, err error) *Unreachable {
	return &Unreachable{URL: withoutSecrets(t.URL), Why: WhyWantsTLS, Err: err, what: "does not understand http; it speaks TLS: write https:// instead"}
}

func explain(t Target, err error) (Why, string) {
	var (
		name      *net.DNSError
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		timeout   net.Error
	)
	switch {
	case errors.Is(err, errRedirect):
		return WhyMoved, reason(err) + "; give the address it names"
	case errors.As(err, &name):
		return WhyName, fmt.Sprintf("the name %q is not known here (%s); is it spelled right?", name.Name, name.Err)
	case strings.HasPrefix(t.URL, "unix:") && errors.Is(err, fs.ErrNotExist):
		return WhyNoSocket, "there is no such socket; is the server or the forward up?"
	case strings.HasPrefix(t.URL, "unix:") && errors.Is(err, fs.ErrPermission):
		return WhyNoSocket, "we may not use this socket: " + reason(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return WhyRefused, "nobody listens there; is the server up (SGLang opens its port only after loading), and is the port right?"
	case errors.As(err, &record):
		return WhyNoTLS, noTLS
	case errors.As(err, &host):
		return WhyCertificate, reason(err) + "; give the name the certificate is for"
	case errors.As(err, &authority), errors.As(err, &invalid):
		return WhyCertificate, "its certificate is not trusted here: " + reason(err) + "; give the file of its authority (--cacert), or take any certificate (--insecure)"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return WhyTimeout, "no answer: " + reason(err) + "; is the address right, and is a firewall between?"
	}
	return WhyOther, "no answer that can be read: " + reason(err)
}

// reason is an error's text in one short line.
func reason(err error) string {
	return shorten(strings.Join(strings.Fields(err.Error()), " "), 300)
}

// wantsTLS reports whether the target was named as http and speaks TLS. The certificate does not matter:
// nothing is sent, the question is what language is spoken.
func (t Target) wantsTLS(ctx context.Context) bool {
	a, err := t.address()
	if err != nil || a.network != "tcp" || a.secure {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, languageTimeout)
	defer cancel()
	conn, err := t.dial(ctx)
	if err != nil {
		return false
	}
	defer conn.Close() //nolint:errcheck // nothing was sent
	config := t.config(a.server)
	config.InsecureSkipVerify = true //nolint:gosec // nothing is sent over it
	err = tls.Client(conn, config).HandshakeContext(ctx)
	// A server that wants a certificate of ours, or another version, speaks TLS too: it answers with an alert.
	var alert *net.OpError
	return err == nil || errors.As(err, &alert) && alert.Op == "remote error"
}

// wantsPlain reports whether the target was named as https and answers plain http. Nothing of ours is sent
// along: no key goes unencrypted.
func (t Target) wantsPlain(ctx context.Context) bool {
	a, err := t.address()
	if err != nil || !a.secure {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, languageTimeout)
	defer cancel()
	plain := Target{URL: "http://" + strings.ReplaceAll(a.addr, "%", "%25"), Dial: t.Dial}
	_, _, err = plain.call(ctx, http.MethodGet, "/v1/models", nil, 0)
	return err == nil || errors.Is(err, errRedirect)
}
