package benchmark

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// words1024 is a list of words that are one token each in every vocabulary it was tried on, when
// written with a space before them (words/README.md).
//
//go:embed words/words1024.txt
var words1024 string

// Palette is what generated prompts are made of: either token ids the server itself told, or words.
type Palette struct {
	// IDs are the ids of words that are exactly one token. Prompts made of them have exact lengths.
	IDs []int
	// Words are sent as text, one word for one token, when the server has no /tokenize.
	Words []string
	// Approximate is set with Words: lengths may be off by a token or more, and the report should say so.
	Approximate bool
	// Note says why lengths are approximate, "" otherwise.
	Note string
}

// WordPalette is the palette of words, for a server that cannot be asked.
func WordPalette(why string) Palette {
	return Palette{
		Words:       strings.Fields(words1024),
		Approximate: true,
		Note:        why + ": prompts are sent as words, their lengths in tokens are approximate",
	}
}

const (
	// leastPalette is the fewest one-token words prompts are made of. With fewer, two different blocks
	// begin with the same token too often, and the server finds prefixes that the trace does not have.
	leastPalette    = 256
	paletteTimeout  = 30 * time.Second
	maxTokenizeBody = 4 << 20
)

// LoadPalette asks the server which of our words are one token, by one /tokenize call. A server
// without that endpoint is served with words (Palette.Approximate).
func LoadPalette(ctx context.Context, target Target) (Palette, error) {
	words := strings.Fields(words1024)
	prompts := make([]string, len(words))
	for i, w := range words {
		prompts[i] = " " + w
	}
	body, err := json.Marshal(map[string]any{"prompt": prompts, "add_special_tokens": false})
	if err != nil {
		return Palette{}, fmt.Errorf("ask for tokens: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, paletteTimeout)
	defer cancel()
	status, answer, err := target.call(ctx, http.MethodPost, "/tokenize", body, maxTokenizeBody)
	if err != nil {
		return Palette{}, fmt.Errorf("ask for tokens: %w", err)
	}
	switch status {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return WordPalette(fmt.Sprintf("the server has no /tokenize (status %d)", status)), nil
	default:
		return Palette{}, fmt.Errorf("ask for tokens: /tokenize answered %d: %s", status, excerpt(answer))
	}
	ids, err := singleTokens(answer, len(words))
	if err != nil {
		return Palette{}, fmt.Errorf("ask for tokens: %w", err)
	}
	if len(ids) < leastPalette {
		return WordPalette(fmt.Sprintf("only %d of %d words are one token here", len(ids), len(words))), nil
	}
	return Palette{IDs: ids}, nil
}

// singleTokens reads the answer for a list of prompts and keeps the ids of those that are one token,
// each id once.
func singleTokens(answer []byte, want int) ([]int, error) {
	var r struct {
		Tokens json.RawMessage `json:"tokens"`
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return nil, fmt.Errorf("/tokenize answer is not JSON: %w", err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(r.Tokens), []byte("[[")) {
		return nil, errors.New("/tokenize answered one list of tokens for a list of prompts")
	}
	var lists [][]int
	if err := json.Unmarshal(r.Tokens, &lists); err != nil {
		return nil, fmt.Errorf("/tokenize tokens are not lists of numbers: %w", err)
	}
	if len(lists) != want {
		return nil, fmt.Errorf("/tokenize answered %d lists for %d prompts", len(lists), want)
	}
	var ids []int
	seen := map[int]bool{}
	for _, l := range lists {
		if len(l) == 1 && l[0] >= 0 && !seen[l[0]] {
			seen[l[0]] = true
			ids = append(ids, l[0])
		}
	}
	return ids, nil
}
