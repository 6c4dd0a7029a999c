package replayjob

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"sgtune/benchmark"
)

// Protocol is the version of what this package says on the wire. It grows with every change of Job, Control or
// Event, also of the types of package benchmark in them that a reader of the older version would get wrong.
const Protocol = 2

// Job is one load level for the agent. Paths are paths on the agent's machine.
type Job struct {
	Protocol int                `json:"protocol"` // the caller's Protocol
	Target   Target             `json:"target"`
	Workload Workload           `json:"workload"`
	Feed     Feed               `json:"feed"`
	Warmup   *Feed              `json:"warmup_feed,omitempty"` // of Load.WarmupRequests; nil = the level's own feed
	Palette  *benchmark.Palette `json:"palette,omitempty"`     // nil = the agent asks the server
	Load     Load               `json:"load"`
	Samples  bool               `json:"samples,omitempty"` // every finished request is sent back
	Prune    bool               `json:"prune,omitempty"`   // the caller is asked after each window
	Silence  Duration           `json:"silence,omitempty"` // so long without a line from the caller ends the job; 0 = no limit
}

// Target is the server under load.
type Target struct {
	URL       string             `json:"url"`
	AnyHost   bool               `json:"any_host,omitempty"` // false: another machine than the agent's own is refused
	Header    map[string]string  `json:"header,omitempty"`
	HeaderEnv map[string]FromEnv `json:"header_env,omitempty"` // further headers, from the agent's environment
	Admin     map[string]string  `json:"admin,omitempty"`      // benchmark.Target.Admin, nil without an admin key
	CAFile    string             `json:"ca_file,omitempty"`    // authorities to trust beside the system's, a file on the agent's machine
	Insecure  bool               `json:"insecure,omitempty"`   // certificates are not looked at
}

// FromEnv is a header's value: Prefix and what the environment variable Env holds.
type FromEnv struct {
	Env    string `json:"env"`
	Prefix string `json:"prefix,omitempty"`
}

// Workload is a file on the agent's machine, or a generated set.
type Workload struct {
	Path     string                     `json:"path,omitempty"`
	Read     benchmark.ReadOptions      `json:"read"`
	Generate *benchmark.GenerateOptions `json:"generate,omitempty"`
}

// Feed says which rows are sent and under which salt.
type Feed struct {
	From    int     `json:"from,omitempty"` // rows [From, To) of the workload; an empty range means all
	To      int     `json:"to,omitempty"`
	Longest float64 `json:"longest,omitempty"` // of those, the longest ones from this quantile on (Workload.Longest); 0 = all
	Short   int     `json:"short,omitempty"`   // > 0: of those, each twice and alone (Workload.Doubled)
	Salt    string  `json:"salt"`
	Open    bool    `json:"open,omitempty"` // the model may end its answers itself
	// OutputTokens asks for so many tokens in every answer; 0 = as the workload says.
	OutputTokens int `json:"output_tokens,omitempty"`
	// Skip is how many prompts earlier jobs took from the same feed (Result.Next): the next level goes on
	// with the next rows.
	Skip int `json:"skip,omitempty"`
}

// Duration is a time.Duration that is written as Go writes it: "1m30s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: write it with its unit, for example 10s", text)
	}
	*d = Duration(parsed)
	return nil
}

// target is what package benchmark sends to. Its errors name headers and variables, never what they hold.
func (t Target) target() (benchmark.Target, error) {
	if err := t.permitted(); err != nil {
		return benchmark.Target{}, err
	}
	out := benchmark.Target{URL: t.URL, Header: headers(t.Header), Admin: headers(t.Admin)}
	if t.CAFile != "" || t.Insecure {
		trust, err := benchmark.LoadTLS(t.CAFile, t.Insecure)
		if err != nil {
			return benchmark.Target{}, err
		}
		out.TLS = trust
	}
	for name, from := range t.HeaderEnv {
		value, ok := os.LookupEnv(from.Env)
		if !ok {
			return benchmark.Target{}, fmt.Errorf("header %s: the environment variable %s is not set on the agent's machine", name, from.Env)
		}
		if out.Header == nil {
			out.Header = http.Header{}
		}
		out.Header.Set(name, from.Prefix+value)
	}
	return out, nil
}

// permitted refuses targets on other machines, unless the job wants them: an agent measures the server beside
// it, and a URL that went wrong must not put a load on somebody else's.
func (t Target) permitted() error {
	err := benchmark.Target{URL: t.URL}.Check()
	if err != nil || t.AnyHost || strings.HasPrefix(t.URL, "unix:") {
		return err
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return errors.New("target: the URL cannot be read")
	}
	if u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback() {
		return nil
	}
	return fmt.Errorf("target %s is not on the agent's own machine; use a loopback address, or set any_host in the job", u.Host)
}

// headers is nil for no headers: nil has a meaning in Target.Admin.
func headers(from map[string]string) http.Header {
	if from == nil {
		return nil
	}
	h := http.Header{}
	for name, value := range from {
		h.Set(name, value)
	}
	return h
}
