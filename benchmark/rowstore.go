package benchmark

import "time"

// rowStore holds the rows of a workload in sending order. Safe for concurrent use.
type rowStore interface {
	len() int
	row(i int) Row
}

// memoryRows are rows kept in memory.
type memoryRows []Row

func (m memoryRows) len() int { return len(m) }

func (m memoryRows) row(i int) Row { return m[i] }

// pickedRows are some rows of another store. None follows another.
type pickedRows struct {
	of    rowStore
	index []int32
}

func (p pickedRows) len() int { return len(p.index) }

func (p pickedRows) row(i int) Row {
	r := p.of.row(int(p.index[i]))
	r.Follows, r.Pause = false, 0
	return r
}

// partRows are the rows of another store from an index on, their times from the first of them that has one.
type partRows struct {
	of      rowStore
	from, n int
	start   time.Duration
	links   *links // of the part
}

func newPartRows(of rowStore, from, n int, l *links) partRows {
	p := partRows{of: of, from: from, n: n, links: l}
	for i := range n {
		if r := of.row(from + i); !r.Follows {
			p.start = r.At
			break
		}
	}
	return p
}

func (p partRows) len() int { return p.n }

func (p partRows) row(i int) Row {
	r := p.of.row(p.from + i)
	if r.Follows && !p.links.waits(i) { // the row it followed is not in this part
		r.Follows, r.Pause = false, 0
		return r
	}
	if !r.Follows {
		r.At = max(0, r.At-p.start)
	}
	return r
}
