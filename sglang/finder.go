package sglang

import (
	"math/bits"
	"strings"
)

// finder looks for many literals in one pass over a text: at each place it asks whether the two bytes
// there are the rarest pair of some literal. A text that holds none costs about a nanosecond a byte,
// however many literals there are.
type finder struct {
	fold  [256]byte      // what a byte counts as
	at    [1 << 16]uint8 // by pair of folded bytes: which of lists, 0 none
	lists [][]needle
}

type needle struct {
	literal string
	pair    int  // offset of its rarest pair
	exact   bool // upper and lower case differ
	id      int
}

// found is a set of literals by their number.
type found [4]uint64

const maxNeedles = 64 * len(found{})

// newFinder prepares literals of at least two bytes, at most maxNeedles of them.
func newFinder(literals ...string) *finder {
	f := &finder{lists: [][]needle{nil}}
	for c := range f.fold {
		f.fold[c] = byte(c)
	}
	for id, literal := range literals {
		f.add(needle{literal: literal, exact: true, id: id})
	}
	return f
}

// newFoldingFinder is newFinder for lower-case literals that stand for every case, and exact ones,
// which are numbered behind them.
func newFoldingFinder(lower, exact []string) *finder {
	f := &finder{lists: [][]needle{nil}}
	for c := range f.fold {
		f.fold[c] = byte(c)
		if c >= 'A' && c <= 'Z' {
			f.fold[c] += 'a' - 'A'
		}
	}
	for id, literal := range lower {
		f.add(needle{literal: literal, id: id})
	}
	for id, literal := range exact {
		f.add(needle{literal: literal, exact: true, id: len(lower) + id})
	}
	return f
}

func (f *finder) add(n needle) {
	n.pair = rarestPair(n.literal)
	pair := int(f.fold[n.literal[n.pair]])<<8 | int(f.fold[n.literal[n.pair+1]])
	if f.at[pair] == 0 {
		f.at[pair] = uint8(len(f.lists))
		f.lists = append(f.lists, nil)
	}
	f.lists[f.at[pair]] = append(f.lists[f.at[pair]], n)
}

// find returns which literals text contains.
func (f *finder) find(text []byte) (set found, any bool) {
	if len(text) == 0 {
		return set, false
	}
	before := f.fold[text[0]]
	for i := 1; i < len(text); i++ {
		c := f.fold[text[i]]
		list := f.at[int(before)<<8|int(c)]
		before = c
		if list == 0 {
			continue
		}
		for k := range f.lists[list] {
			n := &f.lists[list][k]
			if from := i - 1 - n.pair; from >= 0 && f.is(text[from:], n) {
				set[n.id/64] |= 1 << (n.id % 64)
				any = true
			}
		}
	}
	return set, any
}

// is reports whether text begins with a literal.
func (f *finder) is(text []byte, n *needle) bool {
	if len(text) < len(n.literal) {
		return false
	}
	text = text[:len(n.literal)]
	if n.exact {
		return string(text) == n.literal // does not allocate
	}
	for i, c := range text {
		if f.fold[c] != n.literal[i] {
			return false
		}
	}
	return true
}

// next returns the smallest number in the set and takes it out, -1 when the set is empty.
func (s *found) next() int {
	for i, word := range s {
		if word != 0 {
			s[i] &= word - 1
			return 64*i + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// rarestPair is the offset of the two neighbouring bytes that ordinary text holds least often.
func rarestPair(literal string) int {
	best, least := 0, 1<<10
	for i := 0; i+1 < len(literal); i++ {
		if often := commonness(literal[i]) * commonness(literal[i+1]); often < least {
			best, least = i, often
		}
	}
	return best
}

func commonness(c byte) int {
	switch {
	case strings.IndexByte("etaoinsrhl ", c) >= 0:
		return 12
	case c >= 'a' && c <= 'z':
		return 6
	case isDigit(c), c == '.', c == ',', c == ':', c == '-', c == '=', c == '"', c == '\'':
		return 4
	}
	return 2
}
