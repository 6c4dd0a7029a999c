package sglang

import (
	"net/http"
	"strings"
	"time"
)

const (
	// HealthTimeout is how long a client must wait for /health: the server itself takes up to 20 s
	// to decide that it is unhealthy.
	HealthTimeout = 25 * time.Second
	// StuckAfter is how long a server that says it is ready may owe its first token.
	StuckAfter = 3 * HealthTimeout
	// HealthFailures is how many answers in a row must be wrong before they count: one long prefill
	// takes a server past its own limit.
	HealthFailures = 3
)

// The two health endpoints (srt/entrypoints/http_server.py, reference 3.2).
const (
	// HealthPlain is /health. From 0.5.2 on it makes the server generate a token; before, it answers 200
	// as soon as the port is open, whatever the scheduler does.
	HealthPlain = "/health"
	// HealthGenerate is /health_generate: it makes the server generate a token in every version.
	HealthGenerate = "/health_generate"
)

// healthGenerates is the first version known to generate a token for /health.
var healthGenerates = Version{Major: 0, Minor: 5, Patch: 2}

// HealthPath is the endpoint whose 200 is a witness: HealthPlain where it is known to generate a token,
// else HealthGenerate, which is right in every version but is not what people watch. version may be
// unknown (zero); then the wording of the log decides (first event of each kind), and a log that does
// not tell means HealthGenerate. env is the server's own environment: it can switch the generation off.
func HealthPath(version Version, first map[string]Event, env map[string]string) string {
	switch strings.ToLower(env["SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION"]) {
	case "0", "false", "no", "n":
		return HealthGenerate
	}
	if version == (Version{}) && modernLog(first) || version.Compare(healthGenerates) >= 0 {
		return HealthPlain
	}
	return HealthGenerate
}

// modernLog reports whether a start-up log has wording that came with 0.5.9 or later.
func modernLog(first map[string]Event) bool {
	_, elapsed := first["weight_end"].Values["elapsed_s"]
	return elapsed || strings.HasPrefix(first["server_args"].Text, "server_args={") ||
		strings.HasPrefix(first["dist_begin"].Text, "Init parallel") || strings.Contains(first["dist_end"].Text, "elapsed=")
}

// State is what the readiness rule makes of a starting server.
type State string

// States of a starting server.
const (
	StateWaiting State = "waiting"
	StateReady   State = "ready"
	StateStuck   State = "stuck"
	StateGone    State = "gone" // its process ended
)

// Witness is everything readiness is judged by. /health's body is not among it on purpose: SGLang
// answers with an empty one.
type Witness struct {
	Alive   bool // our process lives
	FiredUp bool // "fired up and ready to roll" is in its log
	Health  int  // last status of /health (/health_generate for 0.4.x); 0: refused or timed out
	Token   bool // one real token came back
	Ours    bool // from a port that a process of ours owns or that our log announced

	// Below: for the judgement of silence and of a monitor that disagrees. All may be left zero.

	HealthTimedOut bool          // Health is 0 because nothing came in time, not because it was refused
	Owed           time.Duration // since log or /health first said ready, while no token came
	Silent         time.Duration // since the log last grew
	Failures       int           // answers of /health in a row that were not 200
	Batches        bool          // batch lines came while /health failed
	CalledDead     bool          // some monitor (the user's own) judged the server not ready on Health
}

// Readiness is the verdict of Ready.
type Readiness struct {
	Ready bool
	State State
	// Disagree holds the monitor_wrong findings: witnesses that contradict the verdict. Each text
	// starts with its cause: health_body_empty, health_busy_timeout, health_starting.
	Disagree []string
}

// Ready is the one readiness rule. A server is ready when its process lives and one real token came
// back from its own port, after "fired up" in its log or 200 from /health. A token without either of
// those is ready too, and the disagreement is a finding. A server that both others call ready but
// that gives no token for three health timeouts while its log stands still is stuck; so is one that
// was ready by its log and whose /health has failed three times in a row since.
func Ready(w Witness) Readiness {
	switch {
	case !w.Alive:
		return Readiness{State: StateGone}
	case w.Token && w.Ours:
		return Readiness{Ready: true, State: StateReady, Disagree: disagreements(w)}
	case w.FiredUp && (w.Health == http.StatusOK || w.Failures >= HealthFailures) && w.Owed >= StuckAfter && w.Silent >= StuckAfter:
		return Readiness{State: StateStuck}
	}
	return Readiness{State: StateWaiting, Disagree: monitorErrors(w)}
}

// disagreements are the witnesses against a server that gave a token.
func disagreements(w Witness) []string {
	var texts []string
	switch {
	case w.FiredUp || w.Health == http.StatusOK:
	case w.Health == http.StatusServiceUnavailable:
		texts = append(texts, "health_starting: a token came, but /health says 503 and the log has no ready line")
	case w.HealthTimedOut:
		texts = append(texts, "health_busy_timeout: a token came, but /health did not answer in time and the log has no ready line")
	default:
		texts = append(texts, "health_starting: a token came, but neither /health nor the log says ready")
	}
	return append(texts, monitorErrors(w)...)
}

// monitorErrors explain a monitor that calls a living, working server dead.
func monitorErrors(w Witness) []string {
	if !w.CalledDead {
		return nil
	}
	switch {
	case w.Health == http.StatusOK:
		return []string{"health_body_empty: /health says 200 with an empty body; only the status counts"}
	case w.Batches && (w.HealthTimedOut || w.Health == http.StatusServiceUnavailable):
		return []string{"health_busy_timeout: /health failed while batches ran; the server is busy, not dead"}
	case w.Health == http.StatusServiceUnavailable && !w.FiredUp:
		return []string{"health_starting: /health says 503 because the server is still starting"}
	}
	return nil
}
