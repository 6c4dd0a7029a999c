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
	"sync"
	"time"
)

// words1024 is a list of words that are one token each in every vocabulary it was tried on, when
// written with a space before them (words/README.md).
//
//go:embed words/words1024.txt
var words1024 string

// allWords are the words of words1024, split when they are first needed.
var allWords = sync.OnceValue(func() []string { return strings.Fields(words1024) })

// Palette is what generated prompts are made of: token ids the server itself told, or words.
type Palette struct {
	// IDs are the ids of words that are exactly one token, and where these are few also those of the
	// parts other words are made of. Prompts made of them have exact lengths.
	IDs []int
	// Words are sent as text, one word for one token, where ids are not taken: by a server without
	// /tokenize, by a chat endpoint. Words[i] is the word of IDs[i] where there are IDs.
	Words []string
	// Approximate is set when nobody knows whether the words are one token each in the server's
	// vocabulary: lengths may be off, and the report should say so.
	Approximate bool
	// Note says why lengths are approximate, "" otherwise.
	Note string
}

// WordPalette is the palette of words, for a server that cannot be asked.
func WordPalette(why string) Palette {
	return Palette{
		Words:       allWords(),
		Approximate: true,
		Note:        why + ": prompts are sent as words, their lengths in tokens are approximate",
	}
}

const (
	// leastPalette is the fewest ids prompts are made of. With fewer, two different blocks begin with
	// the same token too often, and the server finds prefixes that the trace does not have.
	leastPalette = 256
	// leastWords is the same for text, where a word that is several tokens would be worse.
	leastWords      = 32
	paletteTimeout  = 30 * time.Second
	maxTokenizeBody = 4 << 20
)

// LoadPalette asks the server which of our words are one token, by one /tokenize call. A server
// without that endpoint is served with words (Palette.Approximate).
func LoadPalette(ctx context.Context, target Target) (Palette, error) {
	words := allWords()
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
	case http.StatusBadRequest, http.StatusUnprocessableEntity: // other servers' /tokenize takes one text, or a model's name
		return WordPalette(fmt.Sprintf("the server's /tokenize takes no list of texts (status %d)", status)), nil
	default:
		return Palette{}, fmt.Errorf("ask for tokens: /tokenize answered %d: %s", status, excerpt(answer))
	}
	lists, err := tokenLists(answer, len(words))
	if err != nil {
		return Palette{}, fmt.Errorf("ask for tokens: %w", err)
	}
	return paletteOf(lists, words), nil
}

// tokenLists reads the answer for n texts. That of a server which reads another field has no lists at all.
func tokenLists(answer []byte, n int) ([][]int, error) {
	var r struct {
		Tokens json.RawMessage `json:"tokens"`
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return nil, fmt.Errorf("/tokenize answer is not JSON: %w", err)
	}
	if string(r.Tokens) == "[]" {
		return nil, nil
	}
	if !bytes.HasPrefix(bytes.TrimSpace(r.Tokens), []byte("[[")) {
		return nil, errors.New("/tokenize answered one list of tokens for a list of prompts")
	}
	var lists [][]int
	if err := json.Unmarshal(r.Tokens, &lists); err != nil {
		return nil, fmt.Errorf("/tokenize tokens are not lists of numbers: %w", err)
	}
	if len(lists) != n {
		return nil, fmt.Errorf("/tokenize answered %d lists for %d prompts", len(lists), n)
	}
	return lists, nil
}

// paletteOf makes a palette of the tokens of words. Ids are sent as they are, so that any id of ordinary
// text will do: a small vocabulary with few whole words gives the parts of the others. Text is made of
// whole words only.
func paletteOf(lists [][]int, words []string) Palette {
	lists = withoutStart(lists)
	var p Palette
	seen := map[int]bool{}
	fresh := func(id int) bool {
		if id < 0 || seen[id] {
			return false
		}
		seen[id] = true
		return true
	}
	for i, l := range lists {
		if len(l) == 1 && fresh(l[0]) {
			p.IDs = append(p.IDs, l[0])
			p.Words = append(p.Words, words[i])
		}
	}
	whole := len(p.IDs)
	if whole >= leastPalette {
		return p
	}
	for _, l := range lists {
		for _, id := range l {
			if fresh(id) {
				p.IDs = append(p.IDs, id)
			}
		}
	}
	if len(p.IDs) < leastPalette {
		return WordPalette(fmt.Sprintf("only %d of %d words are one token here", whole, len(words)))
	}
	if whole < leastWords {
		p.Words = nil
	}
	return p
}

// withoutStart takes off the first token where it is the same in all lists: a server that does not know
// add_special_tokens puts the start of a sequence (BOS) before each text.
func withoutStart(lists [][]int) [][]int {
	for _, l := range lists {
		if len(l) < 2 || l[0] != lists[0][0] {
			return lists
		}
	}
	out := make([][]int, len(lists))
	for i, l := range lists {
		out[i] = l[1:]
	}
	return out
}
