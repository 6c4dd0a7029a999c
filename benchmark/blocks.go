package benchmark

import "fmt"

// defaultBlockTokens is what one hash id of a Mooncake trace stands for.
const defaultBlockTokens = 512

// blockRange is what the rows seen so far allow a hash id to stand for: low <= B <= high tokens. Its zero
// value allows everything. A row of k ids and n tokens allows ceil(n/k) <= B < n/(k-1), so that
// k = ceil(n/B).
type blockRange struct {
	rows      int // with ids
	low, high int
}

func (b *blockRange) add(ids, tokens int) {
	if ids == 0 {
		return
	}
	if b.rows == 0 {
		b.low, b.high = 1, maxTokens
	}
	b.rows++
	b.low = max(b.low, ceilDiv(tokens, ids))
	if ids > 1 {
		b.high = min(b.high, ceilDiv(tokens, ids-1)-1)
	}
}

// block is the usual size if all rows allow it, else a power of two that they allow, else the smallest
// they allow; ok is false when they allow none, and then it is the usual one.
func (b *blockRange) block(usual int) (block int, ok bool) {
	if b.rows == 0 {
		return 0, true
	}
	if b.low > b.high {
		return usual, false
	}
	if b.low <= usual && usual <= b.high {
		return usual, true
	}
	for power := 1; power <= b.high; power *= 2 {
		if power >= b.low {
			return power, true
		}
	}
	return b.low, true
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// prefixTally follows an endless prefix cache over rows in sending order: a row hits with its leading ids
// seen before, each a block of tokens, at most its own length.
type prefixTally struct {
	block int
	seen  idSet

	rows, hitTokens, tokens, hitBlocks, blocks int64
	partial                                    bool // the set of ids is full: only the first rows are counted
	short, long                                int  // rows with fewer and with more ids than their length takes
}

// add takes the next row and returns how many of its tokens the cache holds.
func (p *prefixTally) add(ids []int64, tokens int) (hit int) {
	if p.partial {
		return 0
	}
	p.rows++
	p.tokens += int64(tokens)
	if len(ids) == 0 {
		return 0
	}
	switch want := ceilDiv(tokens, max(1, p.block)); {
	case len(ids) < want:
		p.short++
	case len(ids) > want:
		p.long++
	}
	leading := 0
	for _, id := range ids {
		if !p.seen.has(id) {
			break
		}
		leading++
	}
	for _, id := range ids[leading:] {
		if !p.seen.add(id) {
			p.partial = true
		}
	}
	hit = min(leading*p.block, tokens)
	p.hitTokens += int64(hit)
	p.hitBlocks += int64(leading)
	p.blocks += int64(len(ids))
	return hit
}

func (p *prefixTally) tokenRatio() float64 { return ratio(p.hitTokens, p.tokens) }

func (p *prefixTally) blockRatio() float64 { return ratio(p.hitBlocks, p.blocks) }

func ratio(part, all int64) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// notes says what does not fit.
func (p *prefixTally) notes() []string {
	var notes []string
	if p.short > 0 {
		notes = append(notes, fmt.Sprintf("%d rows have too few hash ids: the rest of their prompts is shared with nobody", p.short))
	}
	if p.long > 0 {
		notes = append(notes, fmt.Sprintf("%d rows have too many hash ids: cut at their input length", p.long))
	}
	if p.partial {
		notes = append(notes, fmt.Sprintf("shared prefixes were counted over the first %d rows only: more different hash ids than are kept in memory", p.rows))
	}
	return notes
}
