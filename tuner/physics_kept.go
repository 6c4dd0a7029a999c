package tuner

import (
	"reflect"
	"sync"

	"sgtune/tuner/physics"
)

// keptEngine is the engine of an earlier ask. What an engine believes is a function of its space, its facts and
// the observations in their order, so where these only grew it goes on from there; where anything else differs (a
// void mark, a value with a new place, another space) one is built from the start. Either way it answers
// as a new one would: it saves time and is no memory of its own.
type keptEngine struct {
	asking sync.Mutex // held from of until the engine was asked: asking uses its scratch space

	space  physics.Space
	facts  physics.Facts
	shown  []physics.Observation
	search *physics.Search
}

// of is an engine that was shown exactly these observations.
func (k *keptEngine) of(space physics.Space, facts physics.Facts, seen []physics.Observation) *physics.Search {
	if !k.leadsTo(space, facts, seen) {
		k.space, k.facts, k.shown, k.search = space, facts, nil, physics.New(space, facts)
		k.facts.Admit = nil
	}
	k.search.Renew(facts)
	for _, o := range seen[len(k.shown):] {
		k.search.Observe(o)
	}
	k.shown = seen
	return k.search
}

// rest lets go of what may be launched, by which the engine was just asked: the rules behind it hold the whole
// history, which must not be kept until the next ask.
func (k *keptEngine) rest() {
	if k.search != nil {
		k.search.Renew(k.facts)
	}
}

// leadsTo reports whether the kept engine becomes the wanted one by the observations it was not shown yet.
func (k *keptEngine) leadsTo(space physics.Space, facts physics.Facts, seen []physics.Observation) bool {
	if k.search == nil || len(k.shown) > len(seen) || !k.facts.Alike(facts) || !reflect.DeepEqual(k.space, space) {
		return false
	}
	for i, o := range k.shown {
		if !o.Same(seen[i]) {
			return false
		}
	}
	return true
}
