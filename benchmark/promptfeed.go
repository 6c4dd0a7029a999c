package benchmark

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

// feed is the Feed of a workload's rows. Only the cursor is shared: rows are read and prompts made by the
// goroutine that asks.
type feed struct {
	w         *Workload
	from, to  int
	options   FeedOptions
	followers rowSet // rows that another one of the range leads to, counted from from

	cursor atomic.Int64 // rows passed over so far, in all passes
}

// errNoRows is what a feed of an empty workload has to say.
var errNoRows = errors.New("the workload has no rows")

// Next implements Feed.
func (f *feed) Next() Prompt {
	size := f.to - f.from
	if size == 0 {
		return Prompt{Row: Row{Err: errNoRows}}
	}
	for {
		n := int(f.cursor.Add(1)) - 1
		if f.followers.has(n % size) {
			continue
		}
		pass := n / size
		return f.start(f.from+n%size, pass).prompt()
	}
}

// Passes implements Feed.
func (f *feed) Passes() int { return ceilDiv(int(f.cursor.Load()), max(1, f.to-f.from)) }

// Learn implements Learner.
func (f *feed) Learn(p Prompt, r Request) {
	if p.words > 0 && r.Prompt > 0 {
		f.options.Calibration.add(p.words, r.Prompt)
	}
}

// takesIDs reports whether prompts are token ids. A session's later turns need the ids of the answers,
// which only /generate tells.
func (f *feed) takesIDs(session bool) bool {
	if len(f.options.Palette.IDs) == 0 || f.options.Endpoint == EndpointChat {
		return false
	}
	return !session || f.options.Endpoint != EndpointCompletions
}

// words renders n tokens of a row as text: a space before every word, the first too, so that blocks join
// into the same tokens wherever they stand.
func (f *feed) words(row Row, n int, seed uint64) string {
	list := f.options.Palette.Words
	if len(list) == 0 {
		list = allWords()
	}
	picked := fillBlocks(make([]string, n), row, f.w.BlockTokens, seed, list)
	var b strings.Builder
	b.Grow(8*len(picked) + 1)
	if f.options.Endpoint == EndpointChat {
		b.WriteString(chatStart)
	}
	for _, w := range picked {
		b.WriteByte(' ')
		b.WriteString(w)
	}
	return b.String()
}

// ids are the tokens of a row, written into out.
func (f *feed) ids(out []int, row Row, seed uint64) {
	fillBlocks(out, row, f.w.BlockTokens, seed, f.options.Palette.IDs)
}

// next is the row that follows row i, when it is in the range.
func (f *feed) next(i int) (j int, ok bool) {
	j, ok = f.w.Follow(i)
	return j, ok && j > i && j < f.to
}

// rowSet is a set of rows by their index in a range; nil is the empty one.
type rowSet []uint64

func (s rowSet) has(i int) bool { return s != nil && s[i/64]>>(i%64)&1 == 1 }

// followersOf finds the rows that another row of the range leads to.
func followersOf(w *Workload, from, to int) rowSet {
	var s rowSet
	for i := from; i < to; i++ {
		if j, ok := w.Follow(i); ok && j > i && j < to {
			if s == nil {
				s = make(rowSet, ceilDiv(to-from, 64))
			}
			s[(j-from)/64] |= 1 << ((j - from) % 64)
		}
	}
	return s
}

// Domains keep the text of a block, of a row's own filler and of a pass's head apart.
const (
	domainBlock = 0x626c6f636b
	domainRow   = 0x726f77
	domainHead  = 0x68656164
)

// fillBlocks writes the prompt of a row into out: the blocks of its hash ids one after the other,
// the last one cut; what the ids do not cover is the row's own.
func fillBlocks[T any](out []T, row Row, block int, seed uint64, palette []T) []T {
	rest := out
	if block > 0 {
		for _, id := range row.HashIDs {
			if len(rest) == 0 {
				return out
			}
			n := min(block, len(rest))
			fill(rest[:n], rand.NewPCG(seed, mix(domainBlock^mix(uint64(id)))), palette)
			rest = rest[n:]
		}
	}
	if len(rest) > 0 {
		fill(rest, rand.NewPCG(seed, mix(domainRow^mix(uint64(row.Number)))), palette)
	}
	return out
}

// fill draws from the palette, two draws from each 64 random bits (multiply and shift: the bias is
// below palette/2^32).
func fill[T any](out []T, source *rand.PCG, palette []T) {
	size := uint64(len(palette))
	for i := 0; i < len(out); i += 2 {
		bits := source.Uint64()
		out[i] = palette[(bits>>32)*size>>32]
		if i+1 < len(out) {
			out[i+1] = palette[(bits&0xffffffff)*size>>32]
		}
	}
}

// headWords is the start of every text of a pass that must not repeat an earlier one.
func headWords(seed uint64) string {
	picked := make([]string, 8)
	fill(picked, rand.NewPCG(seed, domainHead), allWords())
	return strings.Join(picked, " ")
}

// passSeed is the seed of a pass of a salt. FNV-1a and PCG are fixed algorithms: the same salt gives
// the same prompts in every version of this program.
func passSeed(salt string, pass int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(salt)) // a hash never fails
	return mix(h.Sum64() ^ mix(uint64(pass)))
}

// mix spreads neighbouring numbers over all 64 bits (the finalizer of SplitMix64: Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
