package benchmark

import (
	"math/bits"
	"math/rand/v2"
	"strconv"
)

// Domains keep the draws of a generated set apart. (Prompts have domains of their own.)
const (
	drawInput = 1 + iota
	drawOutput
	drawSystem
	drawGroup
	drawOrder
)

// span is a range of lengths, both ends included.
type span struct{ low, high int }

// rangeOf is SGLang's rule (compute_random_lens of its datasets): from max(1, int(full*ratio)) to full.
func rangeOf(full int, ratio float64) span {
	if full <= 0 {
		return span{}
	}
	return span{max(int(float64(full)*ratio), 1), full}
}

// draw is the i-th length of a kind.
func (s span) draw(seed, kind, i uint64) int {
	if s.low == s.high {
		return s.low
	}
	return s.low + below(draw(seed, kind, i), s.high-s.low+1)
}

// below makes a number from 0 to n-1 of 64 random bits (multiply and shift: the bias is below n/2^64).
func below(random uint64, n int) int {
	high, _ := bits.Mul64(random, uint64(n))
	return int(high)
}

// draw is the i-th random number of a kind: 64 bits that do not depend on the ones before.
func draw(seed, kind, i uint64) uint64 {
	return rand.NewPCG(seed, mix(kind^mix(i))).Uint64()
}

// randomRows are rows of random lengths that share nothing.
type randomRows struct {
	n             int
	seed          uint64
	input, output span
}

func (r randomRows) len() int { return r.n }

func (r randomRows) row(i int) Row {
	return Row{
		Number:       i,
		InputTokens:  r.input.draw(r.seed, drawInput, uint64(i)),
		OutputTokens: r.output.draw(r.seed, drawOutput, uint64(i)),
	}
}

// sharedRows are conversations in groups: those of a group begin with the same system prompt. The turns of
// a conversation are rows one after the other; the first one is system prompt and question, the later ones
// are what is new, a question.
type sharedRows struct {
	conversations, turns     int
	perGroup                 int
	seed                     uint64
	block                    int // tokens of a hash id, 0 without system prompts
	system, question, output span
	zipf                     *zipf    // nil: each group has its perGroup prompts
	order                    []uint32 // which conversation is sent when, nil = in order
}

// newSharedRows plans a set of options that were checked. A block is a whole system prompt where all have
// the same length, else a single token, as nothing longer divides all of them.
func newSharedRows(o GenerateOptions) *sharedRows {
	r := &sharedRows{
		conversations: o.GSPNumGroups * o.GSPPromptsPerGroup,
		turns:         o.GSPNumTurns,
		perGroup:      o.GSPPromptsPerGroup,
		seed:          o.Seed,
		system:        rangeOf(o.GSPSystemPromptLen, o.GSPRangeRatio),
		question:      rangeOf(o.GSPQuestionLen, o.GSPRangeRatio),
		output:        rangeOf(o.GSPOutputLen, o.GSPRangeRatio),
	}
	r.block = r.system.high
	if r.system.low < r.system.high {
		r.block = 1
	}
	if o.GSPGroupDistribution == "zipf" {
		z := newZipf(o.GSPNumGroups, o.GSPZipfAlpha)
		r.zipf = &z
	}
	if !o.GSPOrdered {
		r.order = make([]uint32, r.conversations)
		for i := range r.order {
			j := below(draw(r.seed, drawOrder, uint64(i)), i+1) // Fisher and Yates, from the inside out
			r.order[i], r.order[j] = r.order[j], uint32(i)
		}
	}
	return r
}

func (r *sharedRows) len() int { return r.conversations * r.turns }

func (r *sharedRows) row(i int) Row {
	slot := r.slot(i / r.turns)
	turn := i % r.turns
	row := Row{
		Number:       i,
		InputTokens:  r.question.draw(r.seed, drawInput, uint64(slot*r.turns+turn)),
		OutputTokens: r.output.draw(r.seed, drawOutput, uint64(slot)),
	}
	if turn == 0 {
		row.HashIDs = r.systemPrompt(r.group(slot))
		row.InputTokens += len(row.HashIDs) * r.block
	}
	if r.turns > 1 {
		row.Session = strconv.Itoa(i / r.turns)
		row.Follows = turn > 0
	}
	return row
}

// systemPrompt are the block ids of a group's system prompt.
func (r *sharedRows) systemPrompt(group int) []int64 {
	if r.block == 0 {
		return nil
	}
	ids := make([]int64, r.system.draw(r.seed, drawSystem, uint64(group))/r.block)
	for i := range ids {
		ids[i] = int64(group)*int64(r.system.high/r.block) + int64(i)
	}
	return ids
}

// slot is the conversation that is sent as the n-th.
func (r *sharedRows) slot(n int) int {
	if r.order == nil {
		return n
	}
	return int(r.order[n])
}

// group is the group of a conversation.
func (r *sharedRows) group(slot int) int {
	if r.zipf == nil {
		return slot / r.perGroup
	}
	return r.zipf.rank(float64(draw(r.seed, drawGroup, uint64(slot))>>11) / (1 << 53))
}

// links are the turns that wait for the ones before them.
func (r *sharedRows) links() *links {
	if r.turns == 1 {
		return nil
	}
	l := links{next: map[int32]int32{}, before: map[int32]int32{}}
	for i := range int32(r.len()) {
		if int(i+1)%r.turns > 0 {
			l.next[i], l.before[i+1] = i+1, i
		}
	}
	return &l
}
