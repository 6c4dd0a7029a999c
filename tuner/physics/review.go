package physics

// Review is a search that was shown all of a history at once, to be asked what is known by now: Predict, Recommend,
// Importances. The models see what New and Observe show them in the same order, but learn what is slow only each time
// that the history has grown by reviewGrowth, and at its end: a thousand observations cost less than a second where
// one at a time they cost some fifteen. The answers differ from a search's that learnt all along by less than what
// either says it does not know. What is proposed comes of Observe alone.
func Review(space Space, facts Facts, seen []Observation) *Search {
	s := New(space, facts)
	s.l.later = true
	next := 1.0
	for i, o := range seen {
		s.Observe(o)
		if n := float64(i + 1); n >= next || i+1 == len(seen) {
			s.relearn()
			next = max(n+1, n*reviewGrowth)
			if n >= mostRows {
				next = n * reviewGrowthMany
			}
		}
	}
	s.l.later = false
	return s
}

// By which factor a history grows until its models learn again; beyond mostRows they hold no more of it.
const (
	reviewGrowth     = 1.3
	reviewGrowthMany = 2.0
)

// relearn has every model learn what it was shown since the last time. Values are judged first, by what was
// believed before them.
func (s *Search) relearn() {
	s.residual.judgeWaiting()
	s.risk.learn(true)
	s.failures.learn()
	s.throughput.learn()
	s.residual.take(true)
}
