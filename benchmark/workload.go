package benchmark

import (
	"iter"
	"maps"
	"slices"
)

// Workload is what is replayed: the rows of a file, of a part of one, or of a generated set, in sending
// order. Big files stay on disk and are read again row by row, so that memory is bounded whatever their
// size. Safe for concurrent use as long as nobody changes its fields.
type Workload struct {
	Path        string
	Format      string         // a name of the table in formats.go, "" for rows that come from no file
	BlockTokens int            // tokens a hash id stands for, 0 without ids
	Timed       bool           // rows carry arrival times
	TimeUnit    string         // of the file's times, "s" or "ms"; "" without times and for dates
	Dropped     map[string]int // reason to count
	Reuse       float64        // prefix_hit_token_ratio of an endless cache over the rows in sending order
	Notes       []string       // what was guessed or cut, to be shown

	rows  rowStore // nil without any
	links *links   // which row follows which, nil without any
	facts *facts
}

// ReadOptions overrides what ReadWorkload would guess. The zero value guesses everything.
type ReadOptions struct {
	Format      string // a name of the table in formats.go, "" = by the content
	BlockTokens int    // tokens a hash id stands for, 0 = from the rows, else the format's own
	TimeUnit    string // "s" or "ms": unit of the file's times, "" = by format and content
}

// NewWorkload makes a workload of rows that come from no file, in the order given. A block is how many
// tokens a hash id stands for, 0 without ids. Rows that follow a row of their session are linked to it; a
// first row of a session that says so follows nothing. The workload is timed when a row has a time.
func NewWorkload(rows []Row, blockTokens int) *Workload {
	w := &Workload{BlockTokens: blockTokens, Dropped: map[string]int{}, rows: memoryRows(rows)}
	w.links = linkRows(rows)
	w.Timed = slices.ContainsFunc(rows, func(r Row) bool { return r.At > 0 })
	w.settle()
	return w
}

// settle computes what all rows together say.
func (w *Workload) settle() {
	w.facts = gather(w)
	w.Reuse = w.facts.prefix.tokenRatio()
}

// known is what all rows together say; nothing for a workload made by hand.
func (w *Workload) known() *facts {
	if w.facts == nil {
		return &facts{}
	}
	return w.facts
}

// Len is the number of rows.
func (w *Workload) Len() int {
	if w.rows == nil {
		return 0
	}
	return w.rows.len()
}

// Row is row i in sending order, 0 <= i < Len. A row that can't be read again says so in Err.
func (w *Workload) Row(i int) Row { return w.rows.row(i) }

// All goes through the rows in sending order.
func (w *Workload) All() iter.Seq2[int, Row] {
	return func(yield func(int, Row) bool) {
		for i := range w.Len() {
			if !yield(i, w.Row(i)) {
				return
			}
		}
	}
}

// Follow is the row that is sent Row(j).Pause after row i has ended: the next of its session. ok is
// false when none waits for row i.
func (w *Workload) Follow(i int) (j int, ok bool) { return w.links.after(i) }

// Part is the rows [from, to) as a workload of their own, as far as there are such; times count from
// the first of them.
func (w *Workload) Part(from, to int) *Workload {
	from, to = max(0, from), min(to, w.Len())
	part := w.copy()
	if from >= to {
		part.rows, part.links = nil, nil
	} else {
		part.links = w.links.part(from, to)
		part.rows = newPartRows(w.rows, from, to-from, part.links)
	}
	part.settle()
	return part
}

// Longest is the part of the workload whose prompts are at least as long as the quantile q, in sending
// order: what the canary sends. None of its rows waits for another.
func (w *Workload) Longest(q float64) *Workload {
	least := w.InputQuantile(q)
	var picked []int32
	for i, r := range w.All() {
		if r.Input() >= least {
			picked = append(picked, int32(i))
		}
	}
	part := w.copy()
	part.rows, part.links = pickedRows{of: w.rows, index: picked}, nil
	part.settle()
	return part
}

// Doubled is each row twice and alone: the prompts share nothing, and every second one asks for at most short tokens,
// so that somebody always ends and prefill goes on while the rest decodes.
func (w *Workload) Doubled(short int) *Workload {
	rows := make([]Row, 0, 2*w.Len())
	for _, r := range w.All() {
		r.HashIDs = nil
		brief := r
		r.Number, brief.Number = len(rows), len(rows)+1
		brief.OutputTokens = min(r.OutputTokens, short)
		rows = append(rows, r, brief)
	}
	return NewWorkload(rows, 0)
}

// copy is a workload with the same description and rows of its own to be set. Dropped rows belong to
// the file, not to a part of it.
func (w *Workload) copy() *Workload {
	c := *w
	c.Dropped = map[string]int{}
	c.Notes = append([]string(nil), w.Notes...)
	return &c
}

// PromptTokens is the sum of all prompt lengths (texts: estimated).
func (w *Workload) PromptTokens() int64 { return w.known().input.total }

// MeanInput is the mean prompt length in tokens (texts: estimated).
func (w *Workload) MeanInput() float64 { return w.known().input.mean() }

// MeanOutput is the mean wanted output of a row in tokens.
func (w *Workload) MeanOutput() float64 { return w.known().output.mean() }

// MaxTokens is the largest prompt + output of any row: what a server's context length must hold.
func (w *Workload) MaxTokens() int { return w.known().maxTokens }

// InputQuantile is the prompt length below or at which a fraction q of the rows lies, nearest rank.
func (w *Workload) InputQuantile(q float64) int { return w.known().input.quantile(q) }

// rowCount is all rows of the file, dropped ones too.
func (w *Workload) rowCount() int {
	n := w.Len()
	for dropped := range maps.Values(w.Dropped) {
		n += dropped
	}
	return n
}
