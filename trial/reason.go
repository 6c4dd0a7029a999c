package trial

// Reason is why a sampler with a model of its own proposed a trial, in figures: what it expected
// before the launch. Figures it did not have are absent.
type Reason struct {
	Kind    string   `json:"kind"`                   // what the turn was for: start, search, jump, finish, recover
	Value   *float64 `json:"expected,omitempty"`     // of the objective, in its own unit
	Spread  *float64 `json:"spread,omitempty"`       // relative standard deviation of that
	Best    *float64 `json:"best,omitempty"`         // expected of the best configuration measured so far
	Over    *int     `json:"over_trial,omitempty"`   // a trial of that configuration
	Gain    *float64 `json:"gain,omitempty"`         // expected improvement over it, relative (0.02 = 2%)
	OOM     *float64 `json:"oom,omitempty"`          // chance of running out of GPU memory, at start or under load
	Crash   *float64 `json:"crash,omitempty"`        // chance that it does not start for another reason
	Tokens  *float64 `json:"kv_tokens,omitempty"`    // KV tokens of a rank
	FreeGiB *float64 `json:"free_gib,omitempty"`     // free GPU memory after graph capture
	Teaches string   `json:"teaches,omitempty"`      // knob the models are least sure of here
	Share   *float64 `json:"teaches_part,omitempty"` // share of the uncertainty that is this knob's
}
