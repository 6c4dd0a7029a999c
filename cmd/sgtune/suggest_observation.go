package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"sgtune/tuner/physics"
)

// suggestedObservation is what a trial showed; keys that are missing or null are not known.
// docs/suggest.md describes them.
type suggestedObservation struct {
	Config  map[string]json.RawMessage `json:"config"`
	Status  string                     `json:"status"`
	Value   *float64                   `json:"value"`
	Frac    *float64                   `json:"frac"`
	CostMin *float64                   `json:"cost_min"`
	Series  [][]float64                `json:"series"` // share of the window, value until then
	Log     struct {
		BeforeLoadGB *float64 `json:"avail_before_load_gb"`
		AfterLoadGB  *float64 `json:"avail_after_load_gb"`
		Tokens       *float64 `json:"max_total_num_tokens"`
		KVGB         *float64 `json:"kv_gb"`
		AfterKVGB    *float64 `json:"avail_after_kv_gb"`
		AfterGraphGB *float64 `json:"avail_after_graph_gb"`
		MinFreeGB    *float64 `json:"min_free_gb"`
		StartupMin   *float64 `json:"startup_min"`
		Running      *float64 `json:"running_req"`
		HitRate      *float64 `json:"cache_hit_rate"`
	} `json:"log"`
}

// suggestStatus is how a trial ended, in the protocol's words.
func suggestStatus(word string) (physics.Status, error) {
	switch word {
	case "ok":
		return physics.OK, nil
	case "aborted":
		return physics.Pruned, nil
	case "started":
		return physics.Started, nil
	case "start_crash":
		return physics.Crashed, nil
	case "start_oom":
		return physics.StartOOM, nil
	case "load_oom":
		return physics.LoadOOM, nil
	case "host_oom":
		return physics.HostOOM, nil
	}
	return 0, fmt.Errorf("obs.status is %s; use ok, aborted, started, start_crash, start_oom, load_oom or host_oom", quoted(word))
}

// physics is the observation as the search takes it.
func (obs *suggestedObservation) physics(p physics.Point) (physics.Observation, error) {
	status, err := suggestStatus(obs.Status)
	if err != nil {
		return physics.Observation{}, err
	}
	o := physics.Blank(p, status)
	l := &obs.Log
	for _, x := range []struct {
		key  string
		from *float64
		to   *float64
	}{
		{"value", obs.Value, &o.Value},
		{"frac", obs.Frac, &o.Frac},
		{"cost_min", obs.CostMin, &o.CostMin},
		{"log.avail_before_load_gb", l.BeforeLoadGB, &o.BeforeLoadGiB},
		{"log.avail_after_load_gb", l.AfterLoadGB, &o.AfterLoadGiB},
		{"log.max_total_num_tokens", l.Tokens, &o.Tokens},
		{"log.kv_gb", l.KVGB, &o.KVGiB},
		{"log.avail_after_kv_gb", l.AfterKVGB, &o.AfterKVGiB},
		{"log.avail_after_graph_gb", l.AfterGraphGB, &o.AfterGraphGiB},
		{"log.min_free_gb", l.MinFreeGB, &o.LowWaterGiB},
		{"log.startup_min", l.StartupMin, &o.StartupMin},
		{"log.running_req", l.Running, &o.Running},
		{"log.cache_hit_rate", l.HitRate, &o.HitRatio},
	} {
		switch {
		case x.from == nil:
		case math.Abs(*x.from) > 1e15:
			return o, fmt.Errorf("obs.%s is %v; give what was seen, or leave it out", x.key, *x.from)
		default:
			*x.to = *x.from
		}
	}
	if obs.Frac == nil {
		o.Frac = obs.share(status)
	}
	if o.Frac < 0 || o.Frac > 1 {
		return o, fmt.Errorf("obs.frac is %v; give the share of the full measuring time, 0 to 1", o.Frac)
	}
	err = obs.judge(&o)
	return o, err
}

// judge refuses a value that the search cannot take, and calls a trial that was measured and served
// nothing of worth by its name, as tune does.
func (obs *suggestedObservation) judge(o *physics.Observation) error {
	switch {
	case o.Status == physics.OK && obs.Value == nil:
		return errors.New("obs of status ok has no value; give the throughput, or use status started when nothing was measured")
	case obs.Value == nil || o.Status != physics.OK && o.Status != physics.Pruned:
		return nil
	case *obs.Value < 0 || *obs.Value > mostValue:
		return fmt.Errorf("obs.value is %v; higher is better, and the search compares ratios: give a figure of 0 to %v", *obs.Value, mostValue)
	case *obs.Value == 0 && o.Status == physics.OK:
		o.Status = physics.Worthless
	}
	return nil
}

// mostValue is the largest value of the objective.
const mostValue = 1e12

// share is how much of the measuring time a trial saw that does not say so: up to the last of its
// series, else all when it is ok, and the protocol's default of abort_frac when it was aborted.
func (obs *suggestedObservation) share(status physics.Status) float64 {
	if n := len(obs.Series); n > 0 && len(obs.Series[n-1]) > 0 {
		return min(max(obs.Series[n-1][0], 0), 1)
	}
	switch status {
	case physics.OK:
		return 1
	case physics.Pruned:
		return 0.3
	default:
		return 0
	}
}
