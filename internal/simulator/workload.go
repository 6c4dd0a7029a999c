package simulator

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
)

// Workload is what a closed loop of clients asks of a server in virtual time. Rows are used in order
// and again from the start when they run out, each pass with text of its own.
type Workload struct {
	Name    string
	Clients int
	Rows    []Row
}

// Row is one request: lengths, and which blocks of shared text its prompt is made of.
type Row struct {
	In, Out     int
	Blocks      []uint64 // ids of text blocks, in order; what they do not cover is text of this row alone
	BlockTokens int      // tokens a block
}

// Unique is n rows with nothing in common; the lengths vary by the given share around in and out.
func Unique(clients, n, in, out int, vary float64, seed uint64) Workload {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := Workload{Name: "unique", Clients: clients, Rows: make([]Row, n)}
	around := func(x int) int { return max(1, int(float64(x)*(1+vary*(2*rng.Float64()-1)))) }
	for i := range w.Rows {
		w.Rows[i] = Row{In: around(in), Out: around(out)}
	}
	return w
}

// Shared is n rows that begin with one of groups prefixes, chosen at random, and end with text of their own.
func Shared(clients, n, groups, prefix, question, out int, seed uint64) Workload {
	rng := rand.New(rand.NewPCG(seed, 2))
	w := Workload{Name: "shared", Clients: clients, Rows: make([]Row, n)}
	for i := range w.Rows {
		w.Rows[i] = Row{In: prefix + question, Out: out, Blocks: []uint64{uint64(1 + rng.IntN(groups))}, BlockTokens: prefix}
	}
	return w
}

// Founding is the founding workload: 1,096 tokens in, 3,000 out, 160 clients, nothing shared.
func Founding(n int) Workload {
	w := Unique(160, n, 1096, 3000, 0, 0)
	w.Name = "founding"
	return w
}

// ReadMooncake reads a trace of {"input_length","output_length","hash_ids"} lines whose blocks hold
// blockTokens tokens; lengths and blocks are divided by divide.
func ReadMooncake(r io.Reader, clients, blockTokens, divide int) (Workload, error) {
	w := Workload{Name: "mooncake", Clients: clients}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var row struct {
			In   int      `json:"input_length"`
			Out  int      `json:"output_length"`
			Hash []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			return w, fmt.Errorf("read trace row %d: %w", len(w.Rows)+1, err)
		}
		for i := range row.Hash {
			row.Hash[i]++
		}
		w.Rows = append(w.Rows, Row{
			In: max(row.In/divide, 1), Out: max(row.Out/divide, 1), Blocks: row.Hash, BlockTokens: max(blockTokens/divide, 1),
		})
	}
	if err := sc.Err(); err != nil {
		return w, fmt.Errorf("read trace row %d: %w", len(w.Rows)+1, err)
	}
	return w, nil
}

// prompt makes the chain of row k in pass: as NewPrompt would for real ids, but folding (block, offset)
// once per block instead of every token.
func (w *Workload) prompt(k, pass int, seed uint64) Prompt {
	row := &w.Rows[k]
	p := Prompt{Len: row.In, Blocks: make([]uint64, 0, row.In/blockTokens)}
	own := mix(seed ^ uint64(pass)<<40 ^ uint64(k+1)<<8 ^ 0xABCD)
	h := uint64(chainSeed)
	for at := 0; at < row.In; {
		n := min(blockTokens, row.In-at)
		for t := at; t < at+n; {
			id, left := own, row.In-t
			if b := t / max(row.BlockTokens, 1); row.BlockTokens > 0 && b < len(row.Blocks) {
				id, left = row.Blocks[b]^uint64(pass)<<48, row.BlockTokens-t%row.BlockTokens
			}
			step := min(left, at+n-t)
			h = (h ^ mix(id+uint64(t)*0x2545F4914F6CDD1D)) * chainPrime
			t += step
		}
		at += n
		if n == blockTokens {
			h = mix(h)
			p.Blocks = append(p.Blocks, h)
		}
	}
	p.Tail, p.Rest = h, row.In%blockTokens
	return p
}
