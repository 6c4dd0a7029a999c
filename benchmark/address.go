package benchmark

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// address is a Target's URL taken apart.
type address struct {
	network string   // "tcp" or "unix"
	addr    string   // HOST:PORT, or the path of the socket
	secure  bool     // https
	server  string   // name the certificate must be for
	base    *url.URL // what our paths are joined to; its host is the one for the Host header
}

const wantedAddress = "wanted http://HOST:PORT, https://HOST:PORT or unix:///PATH.sock"

// Check reports what is wrong with the address, in one line that says what is wanted.
func (t Target) Check() error {
	_, err := t.address()
	return err
}

func (t Target) address() (address, error) {
	if path, ok := strings.CutPrefix(t.URL, "unix:"); ok {
		return unixAddress(t.URL, path)
	}
	u, err := url.Parse(t.URL)
	if err != nil { // its text repeats the whole address, which may hold a password
		u = nil
	}
	if wrong := wrongURL(t.URL, u); wrong != "" {
		return address{}, fmt.Errorf("address of the server %q %s: %s", withoutSecrets(t.URL), wrong, wantedAddress)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	bare, _, _ := strings.Cut(u.Hostname(), "%") // a zone (fe80::1%eth0) is a matter of this machine only
	host := bare
	if strings.Contains(bare, ":") {
		host = "[" + bare + "]"
	}
	if u.Port() != "" {
		host += ":" + port
	}
	return address{
		network: "tcp", addr: net.JoinHostPort(u.Hostname(), port), secure: u.Scheme == "https", server: bare,
		base: withoutV1(&url.URL{Scheme: u.Scheme, Host: host, Path: u.Path, RawPath: u.RawPath}),
	}, nil
}

// wrongURL says what is wrong with an address over TCP, "" when nothing is; u is nil when it cannot be parsed.
func wrongURL(text string, u *url.URL) string {
	switch {
	case text == "":
		return "is empty"
	case !strings.Contains(text, "://"): // 127.0.0.1:30000, localhost:30000
		return "has no http:// before it"
	case u == nil && strings.Count(withoutSecrets(text), ":") > 2 && !strings.Contains(text, "["):
		return "needs brackets around an IPv6 address, as in http://[::1]:30000"
	case u == nil:
		return "cannot be read"
	}
	port, err := strconv.Atoi(u.Port())
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "has no scheme known here"
	case u.Hostname() == "":
		return "names no host"
	case u.User != nil:
		return "holds a user or a password, which belong into a header"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "has a query or a fragment"
	case strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "["):
		return "needs brackets around an IPv6 address, as in http://[::1]:30000"
	case strings.HasSuffix(u.Host, ":"):
		return "names no port behind its colon"
	case u.Port() != "" && (err != nil || port < 1 || port > 65535):
		return "has a port that is not 1 to 65535"
	}
	return ""
}

// unixAddress reads unix:///PATH. The path is taken as it is: it is a file's name, not a URL's.
func unixAddress(whole, path string) (address, error) {
	const longest = 107 // sun_path of unix(7), without the zero at its end
	path = strings.TrimPrefix(path, "//")
	switch {
	case !strings.HasPrefix(path, "/"):
		return address{}, fmt.Errorf("address of the server %q: a socket's path begins at the root: wanted unix:///PATH.sock", shorten(whole, 200))
	case strings.HasSuffix(path, "/") || strings.Contains(path, "\x00"):
		return address{}, fmt.Errorf("address of the server %q names no socket: wanted unix:///PATH.sock", shorten(whole, 200))
	case len(path) > longest:
		return address{}, fmt.Errorf("address of the server %q: a socket's path has at most %d bytes, this one %d: give a link to its folder with a shorter name", shorten(whole, 200), longest, len(path))
	}
	return address{network: "unix", addr: path, base: &url.URL{Scheme: "http", Host: "localhost", Path: "/"}}, nil
}

// withoutV1 takes off the /v1 of an OpenAI base address: our own paths have it.
func withoutV1(u *url.URL) *url.URL {
	for _, path := range []*string{&u.Path, &u.RawPath} {
		*path = strings.TrimSuffix(strings.TrimRight(*path, "/"), "/v1")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u
}

// withoutSecrets is an address for people: no user, no password, no query.
func withoutSecrets(text string) string {
	text, _, _ = strings.Cut(text, "?")
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, rest = "", text
	} else {
		scheme += "://"
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	return shorten(scheme+rest, 200)
}
