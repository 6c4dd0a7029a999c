//go:build ignore

// shorten makes quickstart.jsonl from the Mooncake conversation trace: the first rows, with every
// length and the block size divided by eight.
//
//	go run shorten.go < conversation_trace.jsonl > quickstart.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

const (
	rows    = 1200
	divisor = 8
	block   = 512 / divisor // tokens a hash id stands for afterwards
)

type row struct {
	Timestamp int64   `json:"timestamp"`
	Input     int     `json:"input_length"`
	Output    int     `json:"output_length"`
	HashIDs   []int64 `json:"hash_ids"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for n := 1; n <= rows && in.Scan(); n++ {
		var r row
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			fail("row %d: %v", n, err)
		}
		r.Input, r.Output = shorter(r.Input), shorter(r.Output)
		if want := (r.Input + block - 1) / block; len(r.HashIDs) != want {
			fail("row %d: %d hash ids for %d blocks of %d tokens", n, len(r.HashIDs), want, block)
		}
		line, err := json.Marshal(r)
		if err != nil {
			fail("row %d: %v", n, err)
		}
		out.Write(append(line, '\n'))
	}
	if err := in.Err(); err != nil {
		fail("read: %v", err)
	}
	if err := out.Flush(); err != nil {
		fail("write: %v", err)
	}
}

// shorter rounds up, so that ceil(shorter(n)/64) = ceil(n/512): every row keeps its number of blocks.
func shorter(tokens int) int { return max(1, (tokens+divisor-1)/divisor) }

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "shorten: "+format+"\n", args...)
	os.Exit(1)
}
