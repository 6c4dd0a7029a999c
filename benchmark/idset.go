package benchmark

// idSet is a set of hash ids in bounded memory: a bit for each id below denseIDs (at most 128 MB, in
// pages made on demand; files number their blocks from 0), and a map of at most sparseIDs others.
type idSet struct {
	pages []*[idPage / 64]uint64
	other map[int64]struct{}
}

const (
	denseIDs  = 1 << 30
	idPage    = 1 << 16 // ids a page has bits for
	sparseIDs = 4 << 20
)

func (s *idSet) has(id int64) bool {
	if id < 0 || id >= denseIDs {
		_, ok := s.other[id]
		return ok
	}
	if page := int(id / idPage); page < len(s.pages) && s.pages[page] != nil {
		return s.pages[page][id%idPage/64]&(1<<(id%64)) != 0
	}
	return false
}

// add puts an id in; false when there is no room for it.
func (s *idSet) add(id int64) bool {
	if id < 0 || id >= denseIDs {
		if len(s.other) >= sparseIDs {
			_, ok := s.other[id]
			return ok
		}
		if s.other == nil {
			s.other = map[int64]struct{}{}
		}
		s.other[id] = struct{}{}
		return true
	}
	page := int(id / idPage)
	if page >= len(s.pages) {
		s.pages = append(s.pages, make([]*[idPage / 64]uint64, page+1-len(s.pages))...)
	}
	if s.pages[page] == nil {
		s.pages[page] = new([idPage / 64]uint64)
	}
	s.pages[page][id%idPage/64] |= 1 << (id % 64)
	return true
}
