package tuner

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"
)

// Lessons keeps what was Learnt of stored studies, for whoever is asked often: a page. A study is looked at again when
// one of its trials has ended, or is void now; until then an answer takes no time. The zero value is ready, and any
// number of callers may ask at once: one looks, the others wait for it.
type Lessons struct {
	looking sync.Mutex
	kept    map[string]lesson // by the study's name
}

type lesson struct {
	of     string // what it was learnt of
	learnt Learnt
}

// mostLessons is how many studies are kept; beyond it all are let go.
const mostLessons = 32

// Of is what the models make of a stored study, the zero Learnt where its file cannot be understood any more. events
// are the study's first, as for StoredProblem. What is returned is shared: it must not be changed.
func (l *Lessons) Of(r *Record, h History, events []Event) Learnt {
	l.looking.Lock()
	defer l.looking.Unlock()
	of := standOf(r, h, events)
	if found, ok := l.kept[r.Name]; ok && found.of == of {
		return found.learnt
	}
	var learnt Learnt
	if p, ok := StoredProblem(r, h, events); ok {
		learnt = Learn(p)
	}
	if l.kept == nil || len(l.kept) >= mostLessons {
		l.kept = map[string]lesson{}
	}
	l.kept[r.Name] = lesson{of, learnt}
	return learnt
}

// standOf names all that Learn depends on: the study as it was stored, and which of its trials have ended.
func standOf(r *Record, h History, events []Event) string {
	source := fnv.New64a()
	_, _ = source.Write([]byte(r.Source)) // never fails
	ended, void, last := 0, 0, time.Time{}
	for _, t := range h {
		if !t.State.Finished() {
			continue
		}
		ended++
		if t.Void != "" {
			void++
		}
		if t.EndedAt.After(last) {
			last = t.EndedAt
		}
	}
	return fmt.Sprint(source.Sum64(), r.Server.Version, hostPoolFixed(events), ended, void, last.UnixNano())
}
