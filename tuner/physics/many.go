package physics

// A night has some tens of trials, and the models are made for that. Beyond manyTrials observations they learn with
// less work for each: ensembles are moved and amplitudes learnt again only now and then, and no model is made of
// more than mostRows observations. So the time of an observation has a bound, and hundreds of trials can be played.
const (
	manyTrials = 60
	mostRows   = 100
	learnEvery = 8
)

// pace counts a model's observations.
type pace struct{ taken int }

// due takes one more observation and reports whether all that is slow is learnt again with it.
func (p *pace) due() bool {
	p.taken++
	return p.taken <= manyTrials || p.taken%learnEvery == 0
}

// leastOf is which one of more than mostRows observations goes: of the older half the first that no other there is
// less worth keeping than; better(i, j) is that i is more worth it than j.
func leastOf(better func(i, j int) bool) int {
	least := 0
	for i := range mostRows / 2 {
		if better(least, i) {
			least = i
		}
	}
	return least
}
