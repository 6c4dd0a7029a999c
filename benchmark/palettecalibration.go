package benchmark

import (
	"fmt"
	"sync"
)

// Calibration learns how many tokens a server adds to a prompt of words: the chat template and the first
// token of a sequence (BOS). Words are one token each, so the difference between what the server counted
// and the words sent is the same for all prompts; once it is known, later prompts are shorter by it and
// have the length the workload asks for. Nothing is sent for it: it learns from the finished requests of
// the replay itself. The zero value is ready; safe for concurrent use; a nil one learns nothing.
type Calibration struct {
	mu        sync.Mutex
	candidate int // the difference seen last
	agreed    int // how many requests in a row said it
	known     bool
	offset    int
	against   int  // requests in a row that contradict the offset
	refuted   bool // for good: the difference is no constant
	samples   int
}

const (
	// agreeing is how many requests in a row must say the same before it is believed, or no longer.
	agreeing = 2
	// mostTemplate is the longest template that is believed; models with a long default system prompt
	// have some hundred tokens.
	mostTemplate = 1024
)

// add takes in a finished request: the words it was made of and the prompt tokens the server counted.
func (c *Calibration) add(words, counted int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples++
	difference := counted - words
	switch {
	case c.refuted:
	case c.known && difference == c.offset:
		c.against = 0
	case c.known:
		if c.against++; c.against >= agreeing {
			c.known, c.refuted = false, true
		}
	case c.agreed > 0 && difference == c.candidate:
		c.agreed++
		if c.agreed >= agreeing && difference >= 0 && difference <= mostTemplate {
			c.known, c.offset = true, difference
		}
	default:
		c.candidate, c.agreed = difference, 1
	}
}

// shorten is how many words make a prompt of n tokens, as far as is known: at least one.
func (c *Calibration) shorten(n int) int {
	offset, _ := c.Learned()
	return max(min(n, 1), n-offset)
}

// Learned is how many tokens the server adds to every prompt of words; ok is false, and the offset 0, as
// long as that is not known or when it is no constant.
func (c *Calibration) Learned() (offset int, ok bool) {
	if c == nil {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return 0, false
	}
	return c.offset, true
}

// Note says in a sentence what was learned, "" when nothing was there to learn from.
func (c *Calibration) Note() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.samples == 0:
		return ""
	case c.known && c.offset == 0:
		return "the server counts one token a word: prompts have the lengths the workload asks for"
	case c.known:
		return fmt.Sprintf("the server adds %d tokens to every prompt (chat template, BOS); prompts are shorter by that since the first answers told it", c.offset)
	case c.refuted || c.samples >= 4*agreeing:
		return "what the server counts and the words sent do not differ by a constant: prompt lengths are approximate"
	}
	return ""
}
