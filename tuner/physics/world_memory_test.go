package physics_test

import (
	"math"

	"sgtune/tuner/physics"
)

const gib = 1 << 30

// card is one GPU of a world and what the server takes of it. The pool follows the published linear
// rule, as every server does; what prefill needs beyond it is each world's own.
type card struct {
	before, weights float64 // GiB free before the weights, GiB of the weights
	cell            float64 // bytes of one KV token
	pool            float64 // GiB lost beside the KV pool
	fewest          float64 // KV tokens below which the server does not start
	scale           float64 // GiB over which the chance of an OOM spreads
}

// launch is the memory side of a start: figures up to the stage it reaches, and whether it comes up.
// graphs is what graph capture takes, GiB.
func (c card) launch(p physics.Point, fraction, graphs float64) (seen physics.Observation, up bool) {
	seen = physics.Blank(p, physics.OK)
	seen.BeforeLoadGiB, seen.AfterLoadGiB = c.before, c.before-c.weights
	reserve := c.before * (1 - fraction)
	kv := seen.AfterLoadGiB - reserve
	tokens := math.Floor(kv * gib / c.cell)
	if tokens < c.fewest {
		return seen, false
	}
	seen.KVGiB, seen.Tokens, seen.AfterKVGiB = kv, tokens, reserve-c.pool
	if seen.AfterKVGiB-graphs < 0.05 {
		return seen, false
	}
	seen.AfterGraphGiB = seen.AfterKVGiB - graphs
	return seen, true
}

// oom is the chance that a peak of need GiB does not fit into what is free: the largest of many
// bursts, so Gumbel's law and not a sigmoid. It also says how low the free memory gets.
func (c card) oom(free, need float64) (chance, low float64) {
	return -math.Expm1(-math.Exp(-(free-need)/c.scale - 1)), free - need
}
