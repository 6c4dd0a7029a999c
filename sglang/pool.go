package sglang

import "math"

// Tokens is the KV pool of one rank for a budget of restGiB: SGLang's whole arithmetic, the state of
// linear-attention layers first. Zero or negative means that the launch fails. slots is the number
// of states, 0 for models without.
func (c Cell) Tokens(restGiB float64, pageSize int) (tokens, slots int) {
	left, slots := c.State.take(restGiB - c.ReserveGiB)
	return floorTokens(math.Trunc(left*GiB)/c.Bytes, pageSize), slots
}

// Share is the part of each further byte of budget that becomes KV pool: the rest grows the states.
func (c Cell) Share() float64 {
	if c.State.SlotBytes <= 0 || c.State.Slots > 0 || c.State.Ratio <= 0 {
		return 1
	}
	return 1 / (1 + c.State.Ratio)
}

// FixedGiB is what is taken from the budget whatever its size: the reserve, and states of a fixed
// number.
func (c Cell) FixedGiB() float64 {
	if c.State.SlotBytes <= 0 || c.State.Slots == 0 {
		return c.ReserveGiB
	}
	left, _ := c.State.take(0)
	return c.ReserveGiB - left
}

// take gives what is left of the budget after the states, and their number.
func (s StateBudget) take(restGiB float64) (left float64, slots int) {
	if s.SlotBytes <= 0 {
		return restGiB, 0
	}
	slots = s.Slots
	draft, padding := float64(s.DraftTokens), float64(s.Padding)
	if slots == 0 {
		budget := restGiB * s.Ratio / (1 + s.Ratio) * GiB
		perSlot := s.SlotBytes * (1 + draft/float64(max(1, s.PerRequest)))
		slots = int(max(0, math.Floor((budget-padding*s.SlotBytes*(1+draft))/perSlot)))
	}
	bytes := (float64(slots) + padding) * s.SlotBytes
	if draft > 0 {
		requests := slots / max(1, s.PerRequest)
		if s.MaxRunning > 0 {
			requests = min(requests, s.MaxRunning)
		}
		bytes += (float64(requests) + padding) * s.SlotBytes * draft
	}
	return restGiB - bytes/GiB, slots
}

// RunningLimit is the most requests that run at once per pool: SGLang's default or the user's wish,
// clamped to half the tokens and to the state slots (mem_cache/kv_cache_configurator.py,
// resolve_max_num_reqs).
func (c Cell) RunningLimit(tokens, slots, contextLen, asked int) int {
	limit := asked
	if limit <= 0 {
		limit = min(max(int(float64(tokens)/float64(max(1, contextLen))*512), 2048), 4096)
	}
	limit = min(limit, max(tokens/2, 0))
	if c.State.SlotBytes > 0 && c.State.PerRequest > 0 {
		limit = min(limit, slots/c.State.PerRequest)
	}
	return max(0, limit)
}
