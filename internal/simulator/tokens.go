package simulator

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Token ids below firstWordID are not words: the ids of answers and what a chat template adds.
const (
	bosID       = 0 // begins a text when add_special_tokens is on, as a tokenizer with a start token does
	firstWordID = 16
)

// sink takes token ids one after the other.
type sink interface{ add(id uint32) }

// idList keeps them; hasher (scan.go) only folds them.
type idList []uint32

func (l *idList) add(id uint32) { *l = append(*l, id) }

// spell cuts a text into words; every word, with the space before it, is one token. Spaces are Unicode's, but
// most texts are plain and go the short way.
func spell(out sink, text string, vocab int) {
	for i := 0; i < len(text); {
		if asciiSpace(text[i]) {
			i++
			continue
		}
		from, h := i, uint64(chainSeed)
		for i < len(text) && !asciiSpace(text[i]) {
			if text[i] >= 0x80 {
				for w := range strings.FieldsSeq(text[from:]) {
					out.add(wordID(w, vocab))
				}
				return
			}
			h = fold(h, uint32(text[i]))
			i++
		}
		out.add(idOf(text[from:i], h, vocab))
	}
}

func asciiSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// wordID is the token of a word: a hash below the vocabulary's size, so that equal words are equal tokens in every
// server.
func wordID(w string, vocab int) uint32 {
	h := uint64(chainSeed)
	for i := range len(w) {
		h = fold(h, uint32(w[i]))
	}
	return idOf(w, h, vocab)
}

// idOf is the token of a word whose bytes fold to h. The words that spell answers have the ids of answers, so that a
// prompt that quotes one finds it in the cache.
func idOf(w string, h uint64, vocab int) uint32 {
	switch w {
	case "one":
		return 1
	case "two":
		return 2
	case "three":
		return 3
	case "four":
		return 4
	case "five":
		return 5
	case "six":
		return 6
	case "seven":
		return 7
	case "eight":
		return 8
	}
	return firstWordID + uint32(mix(h)%uint64(vocab-512))
}

// tokenize lists a text's tokens.
func tokenize(text string, vocab int, special bool) []uint32 {
	ids := make(idList, 0, len(text)/5+1)
	if special {
		ids.add(bosID)
	}
	spell(&ids, text, vocab)
	return ids
}

// textPrompt is tokenize, folded.
func textPrompt(text string, vocab int) Prompt {
	x := newHasher(len(text) / 5)
	x.add(bosID)
	spell(&x, text, vocab)
	return x.prompt()
}

// outputWords spells output ids 1 to 8.
var outputWords = [9]string{"", " one", " two", " three", " four", " five", " six", " seven", " eight"}

// decodeString undoes a quoted JSON string.
func decodeString(quoted []byte) (string, error) {
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return "", errJSON
	}
	return text, nil
}

// answer spells a prompt's output: ids are one digit each, with a period of 16.
type answer struct {
	digits [32]byte // "d,d,...": 16 ids with their commas
	prompt Prompt
}

func newAnswer(p Prompt) answer {
	a := answer{prompt: p}
	for i := range 16 {
		a.digits[2*i], a.digits[2*i+1] = '0'+byte(p.OutputID(i)), ','
	}
	return a
}

// appendIDs adds the output ids from one index up to another, comma separated.
func (a *answer) appendIDs(b []byte, from, to int) []byte {
	if from >= to {
		return b
	}
	for from < to {
		k := from % 16
		n := min(16-k, to-from)
		b = append(b, a.digits[2*k:2*(k+n)]...)
		from += n
	}
	return b[:len(b)-1]
}

// appendText adds the words of the same ids.
func (a *answer) appendText(b []byte, from, to int) []byte {
	for i := from; i < to; i++ {
		b = append(b, outputWords[a.digits[2*(i%16)]-'0']...)
	}
	return b
}

// tokenizeResponse is /tokenize for one text or several.
func tokenizeResponse(texts []string, single bool, special bool, vocab, maxLen int) []byte {
	if single {
		return tokensResponse(tokenize(texts[0], vocab, special), maxLen)
	}
	b, counts := []byte(`{"tokens":[`), []byte(nil)
	for i, t := range texts {
		ids := tokenize(t, vocab, special)
		if i > 0 {
			b, counts = append(b, ','), append(counts, ',')
		}
		b = appendList(b, ids)
		counts = strconv.AppendInt(counts, int64(len(ids)), 10)
	}
	b = append(append(b, `],"count":[`...), counts...)
	return append(field(b, `],"max_model_len":`, maxLen), '}')
}

// tokensResponse is /tokenize for one list of tokens.
func tokensResponse(ids []uint32, maxLen int) []byte {
	b := appendList([]byte(`{"tokens":`), ids)
	b = field(b, `,"count":`, len(ids))
	return append(field(b, `,"max_model_len":`, maxLen), '}')
}

func appendList(b []byte, ids []uint32) []byte {
	b = append(b, '[')
	for k, id := range ids {
		if k > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(id), 10)
	}
	return append(b, ']')
}
