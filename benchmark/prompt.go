package benchmark

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
)

// Prompt is one request ready to send.
type Prompt struct {
	Row          Row
	Pass         int   // how often the feed has started over before this row
	IDs          []int // input_ids; nil when Text is sent
	Text         string
	OutputTokens int
}

// Feed hands out prompts; it never ends (a short file is passed again under a new salt) and never
// repeats a text. Safe for concurrent use.
type Feed interface {
	Next() Prompt
	Passes() int // passes begun so far
}

// NewFeed returns a feed of the rows [from, to) of w in file order; an empty range means all rows.
//
// Prompts of lengths are made from the palette: the block of hash id h is the same text wherever h
// occurs, so that prefixes are shared exactly as the file says, and nothing else is shared. The same
// salt gives the same prompts on every machine; another salt, and each further pass, gives prompts
// of the same lengths and sharing that have no text in common with these.
//
// Prompts of texts are sent as they are on the first pass under the salt ""; otherwise eight words
// made from salt and pass stand before them, the same for all rows of the pass.
func NewFeed(w *Workload, from, to int, salt string, p Palette) Feed {
	from, to = max(0, from), min(to, len(w.Rows))
	if from >= to {
		from, to = 0, len(w.Rows)
	}
	return &feed{rows: w.Rows[from:to], block: w.BlockTokens, salt: salt, palette: p}
}

type feed struct {
	rows    []Row
	block   int
	salt    string
	palette Palette

	mu   sync.Mutex
	sent int // rows handed out
}

func (f *feed) Next() Prompt {
	f.mu.Lock()
	n := f.sent
	f.sent++
	f.mu.Unlock()
	row, pass := f.rows[n%len(f.rows)], n/len(f.rows)
	p := Prompt{Row: row, Pass: pass, OutputTokens: row.OutputTokens}
	seed := passSeed(f.salt, pass)
	switch {
	case row.Text != "":
		p.Text = row.Text
		if pass > 0 || f.salt != "" {
			p.Text = headWords(seed) + "\n" + row.Text
		}
	case f.palette.Approximate:
		p.Text = f.words(row, seed)
	default:
		p.IDs = fillBlocks(make([]int, row.InputTokens), row, f.block, seed, f.palette.IDs)
	}
	return p
}

func (f *feed) Passes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return ceilDiv(f.sent, len(f.rows))
}

// words renders a row of lengths as text: a space before every word, the first too, so that blocks
// join into the same tokens wherever they stand.
func (f *feed) words(row Row, seed uint64) string {
	picked := fillBlocks(make([]string, row.InputTokens), row, f.block, seed, f.palette.Words)
	var b strings.Builder
	b.Grow(8 * len(picked))
	for _, w := range picked {
		b.WriteByte(' ')
		b.WriteString(w)
	}
	return b.String()
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
	words := strings.Fields(words1024)
	picked := make([]string, 8)
	fill(picked, rand.NewPCG(seed, domainHead), words)
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
