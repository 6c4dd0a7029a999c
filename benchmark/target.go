package benchmark

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// Target is the server under load.
type Target struct {
	// URL is the server's address: http://HOST:PORT, https://HOST:PORT or unix:///PATH.sock. What stands
	// behind the host is kept before every path of ours, but for a /v1 at its end, which other clients want.
	URL string
	// Dial replaces ordinary dialling (tunnels, tests). It gets "tcp" and HOST:PORT, or "unix" and a path.
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	Header http.Header // added to every request
	// Admin replaces Header where the server asks for its admin key, when it has one (SGLang from 0.5.9:
	// srt/utils/auth.py, ADMIN_OPTIONAL): there its ordinary key is refused. nil = Header everywhere.
	Admin http.Header
	// TLS says how https is spoken, nil = by the system's certificates (LoadTLS makes others).
	TLS *tls.Config
}

// dialTimeout bounds one connection attempt, in real time, and the TLS handshake after it. A listening
// server accepts within milliseconds, a tunnel within a few round trips.
const dialTimeout = 10 * time.Second

// dial connects to the target and, for https, shakes hands.
func (t Target) dial(ctx context.Context) (net.Conn, error) {
	a, err := t.address()
	if err != nil {
		return nil, err
	}
	dial := t.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	conn, err := dial(ctx, a.network, a.addr)
	if err != nil || !a.secure {
		return conn, err
	}
	secure := tls.Client(conn, t.config(a.server))
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake's error counts
		return nil, failure{failedRefused, fmt.Errorf("TLS handshake with %s: %w", a.addr, err)}
	}
	return secure, nil
}

// config is the target's TLS for a server of that name: HTTP/1.1 only, which is all we speak.
func (t Target) config(server string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.TLS != nil {
		c = t.TLS.Clone()
	}
	if c.ServerName == "" {
		c.ServerName = server
	}
	c.NextProtos = []string{"http/1.1"}
	return c
}

// LoadTLS returns how https is spoken with a server whose certificate the system does not know: by the
// authorities of a PEM file beside the system's, or, insecure, without looking at certificates at all. An
// empty file name adds none.
func LoadTLS(caFile string, insecure bool) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure} //nolint:gosec // asked for by name
	if caFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("certificates to trust: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // a system without certificates trusts the file alone
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificates to trust: %s holds none in PEM form (-----BEGIN CERTIFICATE-----)", caFile)
	}
	c.RootCAs = pool
	return c, nil
}

// transport is a connection for one of the small calls.
func (t Target) transport() *http.Transport {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return t.dial(ctx) }
	return &http.Transport{
		DialContext:        dial,
		DialTLSContext:     dial,
		DisableCompression: true,
		DisableKeepAlives:  true,
	}
}
