//go:build ignore

// mkrows makes the workloads of the virtual nights: rows of lengths and ids of shared blocks, in the form of the
// Mooncake trace.
//
//	go run mkrows.go agents > agents.jsonl           agents with long instructions and short answers
//	go run mkrows.go documents > documents.jsonl     questions about documents of some thousand tokens
//	go run mkrows.go answers < ../../../../examples/quickstart.jsonl > kimi.jsonl
//	    the chat trace of the examples, whose prompts and answers were divided by eight, with answers of nearly
//	    their own length again
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
)

type row struct {
	Timestamp int64   `json:"timestamp"`
	Input     int     `json:"input_length"`
	Output    int     `json:"output_length"`
	HashIDs   []int64 `json:"hash_ids"`
}

// shape is a workload whose prompts begin with one of many shared texts.
type shape struct {
	rows, texts, blocks int     // blocks of each shared text
	block               int     // tokens a hash id stands for
	zipf                float64 // popularity of text k is 1/k^zipf
	question, answer    float64 // mean tokens
	spread              float64 // coefficient of variation of both
}

var shapes = map[string]shape{
	"agents":    {rows: 1500, texts: 300, block: 512, blocks: 10, zipf: 0.6, question: 700, answer: 350, spread: 0.5},
	"documents": {rows: 900, texts: 250, block: 64, blocks: 47, zipf: 0.7, question: 300, answer: 250, spread: 0.4},
}

func main() {
	out := json.NewEncoder(os.Stdout)
	if len(os.Args) == 2 && os.Args[1] == "answers" {
		answers(out)
		return
	}
	if len(os.Args) != 2 || shapes[os.Args[1]].rows == 0 {
		fmt.Fprintln(os.Stderr, "mkrows: name agents, documents or answers")
		os.Exit(2)
	}
	s := shapes[os.Args[1]]
	rng := rand.New(rand.NewPCG(1, uint64(s.texts)))
	fresh := int64(s.texts * s.blocks)
	for i := range s.rows {
		text := int64(pick(rng, s))
		r := row{Timestamp: int64(i) * 500, Input: s.blocks*s.block + tokens(rng, s.question, s.spread), Output: tokens(rng, s.answer, s.spread)}
		for b := range (r.Input + s.block - 1) / s.block {
			if b < s.blocks {
				r.HashIDs = append(r.HashIDs, text*int64(s.blocks)+int64(b))
				continue
			}
			r.HashIDs = append(r.HashIDs, fresh)
			fresh++
		}
		write(out, r)
	}
}

func pick(rng *rand.Rand, s shape) int {
	sum := 0.0
	for k := range s.texts {
		sum += math.Pow(float64(k+1), -s.zipf)
	}
	x := rng.Float64() * sum
	for k := range s.texts {
		if x -= math.Pow(float64(k+1), -s.zipf); x <= 0 {
			return k
		}
	}
	return s.texts - 1
}

// tokens draws a length: log-normal of that mean and coefficient of variation.
func tokens(rng *rand.Rand, mean, cv float64) int {
	sd := math.Sqrt(math.Log(1 + cv*cv))
	return max(1, int(mean*math.Exp(sd*rng.NormFloat64()-sd*sd/2)))
}

func answers(out *json.Encoder) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r row
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, "mkrows:", err)
			os.Exit(1)
		}
		r.Output *= 8
		write(out, r)
	}
}

func write(out *json.Encoder, r row) {
	if err := out.Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, "mkrows:", err)
		os.Exit(1)
	}
}
