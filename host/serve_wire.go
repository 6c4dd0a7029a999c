package host

import (
	"encoding/json"
	"errors"
	"sort"
	"time"
)

// ServeProtocol is the version of what Serve and Remote say to each other. Both sides come from one build of sgtune,
// so another number means that the wrong program was started.
const ServeProtocol = 1

// serveProgram is serveHello.Program; lines before the one that says it are not the agent's.
const serveProgram = "sgtune-agent serve"

// serveHello is the agent's first line.
type serveHello struct {
	Program  string `json:"program"`
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	BootID   string `json:"boot_id"`
	PID      int    `json:"pid"`
}

// request is one line to the agent. Answers carry its number and come in any order. Op "cancel" asks the request
// numbered Args to end early; it has no answer of its own.
type request struct {
	ID   uint64          `json:"id"`
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args,omitempty"`
}

// response is one line from the agent: the result, or why there is none.
type response struct {
	ID     uint64          `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *wireError      `json:"error,omitempty"`
}

// wireError is an error that was told by the other side, in its words.
type wireError struct {
	Text   string  `json:"text"`
	Kind   string  `json:"kind,omitempty"`
	Holder *tenant `json:"holder,omitempty"` // of kindLeased, when the holder came over a link
}

// The kinds of a wireError that a caller branches on.
const (
	kindLeased  = "leased"  // ErrLeased
	kindUnknown = "unknown" // ErrNoProcess
)

// ErrNoProcess is wrapped by Attach's error when the host knows nothing of a process.
var ErrNoProcess = errors.New("no such process on the host")

// Error implements error.
func (e *wireError) Error() string { return e.Text }

// Is makes errors.Is work across the link.
func (e *wireError) Is(target error) bool {
	return e.Kind == kindLeased && target == ErrLeased || e.Kind == kindUnknown && target == ErrNoProcess
}

// toWire puts an error into the words of the protocol.
func toWire(err error) *wireError {
	var told *wireError
	if errors.As(err, &told) {
		return told
	}
	w := &wireError{Text: err.Error()}
	switch {
	case errors.Is(err, ErrLeased):
		w.Kind = kindLeased
	case errors.Is(err, ErrNoProcess):
		w.Kind = kindUnknown
	}
	return w
}

// wireCommand is a Command. Words are bytes, because JSON text cannot carry what is not UTF-8.
type wireCommand struct {
	Argv   [][]byte    `json:"argv"`
	Env    [][2][]byte `json:"env,omitempty"`
	Dir    []byte      `json:"dir,omitempty"`
	Marker string      `json:"marker,omitempty"`

	Guard     *GuardLimits `json:"guard,omitempty"`
	Container *Container   `json:"container,omitempty"`
	Beat      []byte       `json:"beat,omitempty"` // the guard's heartbeat file, which is the lease's; serve knows it
	Client    *client      `json:"client,omitempty"`
}

func packCommand(c Command) wireCommand {
	w := wireCommand{Dir: []byte(c.Dir), Marker: c.Marker, Guard: c.Guard, Container: c.Container}
	for _, word := range c.Argv {
		w.Argv = append(w.Argv, []byte(word))
	}
	for name, value := range c.Env {
		w.Env = append(w.Env, [2][]byte{[]byte(name), []byte(value)})
	}
	sort.Slice(w.Env, func(i, j int) bool { return string(w.Env[i][0]) < string(w.Env[j][0]) })
	return w
}

func (w wireCommand) command(logPath string) Command {
	c := Command{Env: map[string]string{}, Dir: string(w.Dir), LogPath: logPath, Marker: w.Marker, Container: w.Container}
	for _, word := range w.Argv {
		c.Argv = append(c.Argv, string(word))
	}
	for _, pair := range w.Env {
		c.Env[string(pair[0])] = string(pair[1])
	}
	return c
}

// startArgs ask for a process. A second request with the same Run finds the process of the first.
type startArgs struct {
	Run     string      `json:"run"`             // the caller's key, a folder name
	Lease   string      `json:"lease,omitempty"` // token of the lease the caller believes to hold, "" = none
	Command wireCommand `json:"command"`
}

// processRef names a process of the host: by its run folder where it has a keeper, else by identity alone.
type processRef struct {
	Run string `json:"run,omitempty"`
	ID  ID     `json:"id"`
}

type logArgs struct {
	Run    string `json:"run"`
	Offset int64  `json:"offset"` // bytes
	Limit  int    `json:"limit"`  // bytes
}

type stopArgs struct {
	Process processRef    `json:"process"`
	Grace   time.Duration `json:"grace,omitempty"` // ns
	Over    bool          `json:"over,omitempty"`  // the caller's context has ended: kill and look once
}

type markerArgs struct {
	Marker string `json:"marker,omitempty"`
}

type portArgs struct {
	Port int `json:"port"`
}

// wireEndpoint is an Endpoint without the way there, which is the caller's matter.
type wireEndpoint struct {
	Port      int    `json:"port"`
	URL       string `json:"url"`
	Listening bool   `json:"listening,omitempty"`
	Owners    []int  `json:"owners,omitempty"`
}

// leaseArgs ask for the lease, or for another term of it.
type leaseArgs struct {
	Token    string        `json:"token"`
	Who      string        `json:"who,omitempty"`
	Client   client        `json:"client"`
	Patience time.Duration `json:"patience,omitempty"` // ns of silence after which the lease is given up
	Evict    string        `json:"evict,omitempty"`    // token of a holder the caller knows to be dead
}
