package main

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sgtune/benchmark"
)

// replayTarget is the server under load as the command line names it, with what must never be shown.
type replayTarget struct {
	benchmark.Target
	shown   string   // the address without credentials
	local   bool     // on this machine
	secrets []string // exact values that no report, error or line may hold
	notes   []string // what a person should know about how it is reached
}

// Environment variables that hold the api key when --api-key-env does not name one.
const (
	keyVariable       = "SGTUNE_API_KEY"
	commonKeyVariable = "OPENAI_API_KEY"
)

// newReplayTarget reads address, headers, api key and certificates. A wrong one is a usage error.
func newReplayTarget(o *replayOptions, env func(string) string) (*replayTarget, error) {
	t := &replayTarget{Target: benchmark.Target{URL: o.url}}
	u, err := url.Parse(o.url)
	if err == nil && u.User != nil && u.Host != "" { // as curl takes it; benchmark wants it in a header
		password, _ := u.User.Password()
		t.secret(password)
		req := http.Request{Header: http.Header{}}
		req.SetBasicAuth(u.User.Username(), password)
		t.Header = req.Header
		_, basic, _ := strings.Cut(t.Header.Get("Authorization"), " ")
		t.secret(basic)
		u.User = nil
		t.URL = u.String()
	}
	if err := t.Check(); err != nil {
		return nil, usagef("--url: %w", err)
	}
	t.shown = t.URL
	if err := t.headers(o.headers); err != nil {
		return nil, err
	}
	t.local = u != nil && (u.Scheme == "unix" || isLoopback(u.Hostname()))
	encrypted := u != nil && u.Scheme == "https"
	if err := t.apiKey(o.apiKeyEnv, t.local || encrypted, env); err != nil {
		return nil, err
	}
	switch {
	case o.cacert == "" && !o.insecure:
		return t, nil
	case o.cacert != "" && o.insecure:
		return nil, usagef("--cacert and --insecure exclude each other; give one")
	case !encrypted:
		return nil, usagef("--cacert and --insecure belong to https, but --url is %s; write https://", t.shown)
	}
	t.TLS, err = benchmark.LoadTLS(o.cacert, o.insecure)
	if err != nil {
		return nil, usagef("--cacert: %w; name the PEM file of the authority that signed the server's certificate", err)
	}
	return t, nil
}

// headers adds those of --header.
func (t *replayTarget) headers(given []string) error {
	for _, pair := range given {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			name, value, found = strings.Cut(pair, ": ") // as curl has it
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !found || !headerName(name) || !headerValue(value) {
			return usagef("--header %.20q is no header; write it as NAME=VALUE", name)
		}
		if t.Header == nil {
			t.Header = http.Header{}
		}
		t.Header.Add(name, value)
		if len(value) >= leastInherited || secretHeader(name) {
			_, word, _ := strings.Cut(value, " ") // Bearer KEY
			t.secret(value)
			t.secret(word)
		}
	}
	return nil
}

// secretHeader reports whether a header's name says that its value is a secret.
func secretHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "key", "token", "secret", "cookie", "password"}, func(part string) bool { return strings.Contains(name, part) })
}

// apiKey takes the key from the environment. The common variable's key belongs to somebody's account
// elsewhere: unless it is named, it is not sent unencrypted to another machine.
func (t *replayTarget) apiKey(variable string, safe bool, env func(string) string) error {
	name := variable
	for _, candidate := range []string{keyVariable, commonKeyVariable} {
		if name == "" && env(candidate) != "" {
			name = candidate
		}
	}
	if name == "" {
		return nil
	}
	key := strings.TrimSpace(env(name))
	if key == "" {
		return usagef("--api-key-env %.40q: that variable is not set or empty; export it first", name)
	}
	t.secret(key)
	switch {
	case !headerValue(key):
		return usagef("the api key in %.40s holds characters that no header may have", name)
	case t.Header.Get("Authorization") != "":
		return nil // given by hand
	case variable == "" && name == commonKeyVariable && !safe:
		t.notes = append(t.notes, "the key in "+commonKeyVariable+" is not sent unencrypted to another machine; --api-key-env "+commonKeyVariable+" sends it")
		return nil
	}
	if t.Header == nil {
		t.Header = http.Header{}
	}
	t.Header.Set("Authorization", "Bearer "+key)
	t.notes = append(t.notes, "requests carry the api key in "+name)
	return nil
}

// leastSecret is the shortest value that is masked wherever it stands: shorter ones protect nothing, and are
// in every other word.
const leastSecret = 4

// secret remembers a value that must not be shown.
func (t *replayTarget) secret(value string) {
	if len(value) >= leastSecret {
		t.secrets = append(t.secrets, value)
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// headerName reports whether a header may be called so (RFC 9110, 5.6.2: a token).
func headerName(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		letter := r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}) < 0
}

// headerValue reports whether a header may say so: nothing that ends its line.
func headerValue(value string) bool {
	return strings.IndexFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}
