package trial

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Context is what a log cannot know about its server: the second input of a diagnosis, in the format
// of the failure vocabulary ("context" of an expect file). A nil pointer, map, slice or any means
// that the fact is not known; null is the same as an absent key.
type Context struct {
	Alive         *bool          `json:"alive,omitempty"`           // the process still ran when it was judged
	ExitCode      *float64       `json:"exit_code,omitempty"`       // of the server process; negative = signal; 128+n as a shell reports it
	ElapsedS      *float64       `json:"elapsed_s,omitempty"`       // since the launch
	ReadyTimeoutS *float64       `json:"ready_timeout_s,omitempty"` // limit of the start
	LogSilentS    *float64       `json:"log_silent_s,omitempty"`    // since the log last grew
	HostRAMGB     *float64       `json:"host_ram_gb,omitempty"`     // 10^9 bytes
	Flags         map[string]any `json:"flags,omitempty"`           // flags of the launch, with or without "--"
	Nnodes        *float64       `json:"nnodes,omitempty"`
	NodeRank      *float64       `json:"node_rank,omitempty"`
	Executor      any            `json:"executor,omitempty"` // how the server was reached: a word, or an object
	Probes        []ProbeSeen    `json:"probes,omitempty"`   // what the readiness probe saw

	KernelOOMKills  *float64 `json:"kernel_oom_kills,omitempty"` // rise of the kernel's counter during the trial
	CgroupLimitGB   *float64 `json:"cgroup_limit_gb,omitempty"`
	CgroupOOMKills  *float64 `json:"cgroup_oom_kills,omitempty"`
	ChildrenDead    any      `json:"children_dead,omitempty"`       // a count, a list, or true
	NVMLUsedBefore  Figures  `json:"nvml_used_gb_before,omitempty"` // GPU memory in use before the launch, one figure a GPU
	AvailableLastGB *float64 `json:"host_available_gb_last,omitempty"`
	AvailableMinGB  *float64 `json:"host_available_gb_min,omitempty"`

	Quality   any            `json:"quality,omitempty"`  // the gate's result: baseline, measured, max_drop
	Workload  any            `json:"workload,omitempty"` // what the load generator got
	Control   any            `json:"control,omitempty"`  // a comparison trial
	Env       map[string]any `json:"env,omitempty"`      // environment of the launch
	StoppedBy *string        `json:"stopped_by,omitempty"`
}

// ProbeSeen is one kind of answer that a readiness probe got.
type ProbeSeen struct {
	Path      string      `json:"path"`
	Status    ProbeStatus `json:"status"`
	BodyBytes *float64    `json:"body_bytes,omitempty"`
	Count     *float64    `json:"count,omitempty"` // nil = once
	From      any         `json:"from,omitempty"`  // from where it asked
	Old       any         `json:"verdict_of_old_monitor,omitempty"`
}

// ProbeStatus is an HTTP status, or why there was none. The zero value is not known.
type ProbeStatus struct {
	Code int
	Word string // "refused", "timeout" or another reason
}

// MarshalJSON writes the number, else the word.
func (s ProbeStatus) MarshalJSON() ([]byte, error) {
	switch {
	case s.Code != 0:
		return json.Marshal(s.Code)
	case s.Word != "":
		return json.Marshal(s.Word)
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads 503, "503", "refused", "timeout" or null.
func (s *ProbeStatus) UnmarshalJSON(text []byte) error {
	*s = ProbeStatus{}
	var word string
	if json.Unmarshal(text, &word) == nil {
		word = strings.TrimSpace(word)
		if n, err := strconv.Atoi(word); err == nil {
			s.Code = n
			return nil
		}
		s.Word = strings.ToLower(word)
		return nil
	}
	var n float64
	if err := json.Unmarshal(text, &n); err != nil {
		return fmt.Errorf("want a number, %q or %q", "refused", "timeout")
	}
	if n >= 1 && n < 1000 {
		s.Code = int(n)
	}
	return nil
}

// Figures are numbers that may be given as a list or as one number.
type Figures []float64

// UnmarshalJSON reads 1.5, [1.5, 2] or null; null inside a list is skipped.
func (f *Figures) UnmarshalJSON(text []byte) error {
	*f = nil
	var list []*float64
	if json.Unmarshal(text, &list) == nil {
		for _, v := range list {
			if v != nil {
				*f = append(*f, *v)
			}
		}
		return nil
	}
	var one float64
	if err := json.Unmarshal(text, &one); err != nil {
		return fmt.Errorf("want a number or a list of numbers")
	}
	*f = Figures{one}
	return nil
}

// ParseContext reads a context. It is an object; a whole expect file, which has it under "context",
// is taken too. Unknown keys are ignored. Anything of a wrong type is one error that names the key.
func ParseContext(text []byte) (Context, error) {
	var c Context
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return c, fmt.Errorf("read the context: it is not a JSON object: %w", err)
	}
	if inner, whole := raw["context"]; whole {
		raw = nil
		if err := json.Unmarshal(inner, &raw); err != nil {
			return c, fmt.Errorf("read the context: key \"context\": want an object: %w", err)
		}
	}
	fields := c.fields()
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		value, field := raw[key], fields[key]
		if field.into == nil {
			continue
		}
		if err := json.Unmarshal(value, field.into); err != nil {
			return Context{}, fmt.Errorf("read the context: key %q: want %s, got %s", key, field.want, brief(value))
		}
	}
	return c, nil
}

// field is one key of a context: where it goes and what it may be, in words.
type field struct {
	into any
	want string
}

func (c *Context) fields() map[string]field {
	const number, object = "a number", "an object"
	return map[string]field{
		"alive": {&c.Alive, "true or false"}, "exit_code": {&c.ExitCode, "a number or null"}, "elapsed_s": {&c.ElapsedS, number},
		"ready_timeout_s": {&c.ReadyTimeoutS, number}, "log_silent_s": {&c.LogSilentS, number}, "host_ram_gb": {&c.HostRAMGB, number},
		"flags": {&c.Flags, object}, "nnodes": {&c.Nnodes, number}, "node_rank": {&c.NodeRank, number}, "executor": {&c.Executor, "any value"},
		"probes":           {&c.Probes, `a list of objects with path, status (a number, "refused" or "timeout") and count`},
		"kernel_oom_kills": {&c.KernelOOMKills, number}, "cgroup_limit_gb": {&c.CgroupLimitGB, number}, "cgroup_oom_kills": {&c.CgroupOOMKills, number},
		"children_dead": {&c.ChildrenDead, "any value"}, "nvml_used_gb_before": {&c.NVMLUsedBefore, "a number or a list of numbers"},
		"host_available_gb_last": {&c.AvailableLastGB, number}, "host_available_gb_min": {&c.AvailableMinGB, number},
		"quality": {&c.Quality, "any value"}, "workload": {&c.Workload, "any value"}, "control": {&c.Control, "any value"},
		"env": {&c.Env, object}, "stopped_by": {&c.StoppedBy, "a string"},
	}
}

// brief is a value short enough for an error message.
func brief(value json.RawMessage) string {
	const most = 60
	if len(value) > most {
		return string(value[:most]) + "..."
	}
	return string(value)
}

// exit is how the server ended, as far as the context says it. A shell reports 128+n for signal n.
func (c *Context) exit() (Exit, bool) {
	var e Exit
	e.Alive = c.Alive != nil && *c.Alive
	if e.Alive || c.ExitCode == nil {
		return e, c.Alive != nil && !*c.Alive
	}
	const shell, signals = 128, 64
	e.Known = true
	switch code := clampInt(*c.ExitCode); {
	case code < 0:
		e.Code, e.Signal = -1, -code
	case code > shell && code <= shell+signals:
		e.Code, e.Signal = -1, code-shell
	default:
		e.Code = code
	}
	return e, true
}

// clampInt turns any JSON number into an int.
func clampInt(v float64) int {
	if math.IsNaN(v) {
		return 0
	}
	return int(max(-1<<31, min(1<<31, v)))
}
