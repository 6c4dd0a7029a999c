package benchmark

import (
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// arrival is a prompt and when it is due, as an offset from the level's start.
type arrival struct {
	prompt Prompt
	due    time.Duration
}

// schedule hands out the arrivals of an open loop in order of their times. It never ends.
type schedule interface {
	next() arrival
}

// newSchedule returns the schedule of a feed.
func newSchedule(a Arrivals, feed Feed) schedule {
	if a.Process == ArrivalsRecorded {
		return &recorded{feed: feed, speed: a.Speed, spread: a.Spread}
	}
	return &drawn{feed: feed, gap: gaps(a)}
}

// gaps returns the time from arrival to arrival in seconds, by the number of the arrival.
//
// Independent gaps with mean 1/rate make a renewal process: exponential ones the Poisson process of users that
// know nothing of each other, gamma ones of shape k the same rate in bursts (k < 1) or evenly (k > 1); their
// coefficient of variation is 1/sqrt(k). The first arrival of a constant rate is due at once.
func gaps(a Arrivals) func(i int) float64 {
	source := rand.NewPCG(a.Seed, 0x5367_7475_6e65_2121)
	switch a.Process {
	case ArrivalsConstant:
		return func(i int) float64 { return min(float64(i), 1) / a.Rate }
	case ArrivalsPoisson:
		exponential := distuv.Exponential{Rate: a.Rate, Src: source}
		return func(int) float64 { return exponential.Rand() }
	}
	gamma := distuv.Gamma{Alpha: a.Burstiness, Beta: a.Burstiness * a.Rate, Src: source}
	return func(int) float64 { return gamma.Rand() }
}

// drawn is a schedule of random or equal gaps.
type drawn struct {
	feed Feed
	gap  func(i int) float64
	n    int
	at   float64 // seconds
}

func (d *drawn) next() arrival {
	d.at += d.gap(d.n)
	d.n++
	return arrival{d.feed.Next(), time.Duration(d.at * float64(time.Second))}
}

// recorded is the schedule of the file itself: Row.At, faster by speed. The first row is due at once. When the
// feed begins again, its next pass follows at the mean distance of the rows so far.
type recorded struct {
	feed   Feed
	speed  float64
	spread bool

	ahead  []arrival // rows of one stamp, in file time, from position taken on
	taken  int
	after  arrival // the first row behind them
	begun  bool
	pass   int
	base   time.Duration // added to the stamps of this pass
	rows   int           // read so far
	newest time.Duration // largest stamp so far, base included
}

// mostAhead is how many rows of one stamp are read ahead at most, to be spread.
const mostAhead = 1024

func (r *recorded) next() arrival {
	if !r.begun {
		r.begun = true
		r.after = r.read()
	}
	if r.taken == len(r.ahead) {
		r.refill()
	}
	a := r.ahead[r.taken]
	r.ahead[r.taken] = arrival{} // a prompt is big
	r.taken++
	a.due = time.Duration(float64(a.due) / r.speed)
	return a
}

// refill reads the rows of the next stamp: all of them, to be spread up to the stamp behind, or one.
func (r *recorded) refill() {
	r.ahead, r.taken = append(r.ahead[:0], r.after), 0
	stamp := r.after.due
	for r.after = r.read(); r.spread && r.after.due == stamp && len(r.ahead) < mostAhead; r.after = r.read() {
		r.ahead = append(r.ahead, r.after)
	}
	step := (r.after.due - stamp) / time.Duration(len(r.ahead))
	if !r.spread {
		step = 0
	}
	for i := range r.ahead {
		r.ahead[i].due += time.Duration(i) * step
	}
}

// read takes a row from the feed. Stamps never go back: a row out of order is due with the one before it.
func (r *recorded) read() arrival {
	p := r.feed.Next()
	at := p.Row.At
	switch {
	case r.rows == 0:
		r.base = -at
		r.pass = p.Pass
	case p.Pass != r.pass:
		r.pass = p.Pass
		r.base = r.newest + r.newest/time.Duration(max(1, r.rows-1)) - at
	}
	r.rows++
	r.newest = max(r.newest, r.base+at)
	return arrival{p, r.newest}
}
