package benchmark

// links say which row is sent when another one has ended. A nil *links has none.
type links struct {
	next, before map[int32]int32 // row to the row after it, and back
}

// maxLinks bounds the memory of links: about 100 MB.
const maxLinks = 2 << 20

// linker builds links from rows in sending order.
type linker struct {
	links links
	last  map[string]int32 // session to its latest row
}

// add takes row i. It reports whether the row really follows one: the first row of a session follows
// nothing, whatever it says.
func (l *linker) add(i int, session string, follows bool) bool {
	if session == "" {
		return false
	}
	before, ok := l.last[session]
	if l.last == nil {
		l.last = map[string]int32{}
		l.links = links{next: map[int32]int32{}, before: map[int32]int32{}}
	}
	l.last[session] = int32(i)
	if !ok || !follows {
		return false
	}
	l.links.next[before], l.links.before[int32(i)] = int32(i), before
	return true
}

// full reports whether there is no room for more.
func (l *linker) full() bool { return len(l.links.next) >= maxLinks || len(l.last) >= maxLinks }

// done returns the links, nil without any.
func (l *linker) done() *links {
	if len(l.links.next) == 0 {
		return nil
	}
	return &l.links
}

// linkRows links rows in memory and clears Follows where there is nothing to follow.
func linkRows(rows []Row) *links {
	var l linker
	for i := range rows {
		if r := &rows[i]; !l.add(i, r.Session, r.Follows) {
			r.Follows = false
		}
	}
	return l.done()
}

// after is the row that waits for row i.
func (l *links) after(i int) (j int, ok bool) {
	if l == nil {
		return 0, false
	}
	next, ok := l.next[int32(i)]
	return int(next), ok
}

// waits reports whether row i waits for another.
func (l *links) waits(i int) bool {
	if l == nil {
		return false
	}
	_, ok := l.before[int32(i)]
	return ok
}

// part is the links within rows [from, to), counted from there.
func (l *links) part(from, to int) *links {
	if l == nil {
		return nil
	}
	p := links{next: map[int32]int32{}, before: map[int32]int32{}}
	for a, b := range l.next {
		if int(a) >= from && int(b) < to {
			p.next[a-int32(from)], p.before[b-int32(from)] = b-int32(from), a-int32(from)
		}
	}
	if len(p.next) == 0 {
		return nil
	}
	return &p
}
