package simulator

import (
	"encoding/json"
	"strconv"
	"strings"
)

// bosID begins a text when add_special_tokens is on, as a tokenizer with a start token does.
const bosID = 0

// tokenize cuts a text into words; every word, with the space before it, is one token. Ids are a hash of the
// word below the vocabulary's size, so that equal words are equal tokens in every server.
func tokenize(text string, vocab int, special bool) []uint32 {
	ids := make([]uint32, 0, len(text)/5+1)
	if special {
		ids = append(ids, bosID)
	}
	for w := range strings.FieldsSeq(text) {
		h := uint64(chainSeed)
		for i := range len(w) {
			h = fold(h, uint32(w[i]))
		}
		ids = append(ids, 1+uint32(mix(h)%uint64(vocab-512)))
	}
	return ids
}

func textPrompt(text string, vocab int) Prompt { return NewPrompt(tokenize(text, vocab, true)) }

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

// appendIDs adds the first n output ids, comma separated.
func (a *answer) appendIDs(b []byte, n int) []byte {
	if n == 0 {
		return b
	}
	for ; n >= 16; n -= 16 {
		b = append(b, a.digits[:]...)
	}
	b = append(b, a.digits[:2*n]...)
	return b[:len(b)-1]
}

func (a *answer) appendText(b []byte, n int) []byte {
	for i := range n {
		b = append(b, outputWords[a.prompt.OutputID(i)]...)
	}
	return b
}

// event is one /generate result: the whole answer so far.
func (a *answer) event(b []byte, rid string, words bool, p progress) []byte {
	b = append(b, `{"text":"`...)
	if words {
		b = a.appendText(b, p.out)
	}
	b = append(b, `","output_ids":[`...)
	b = a.appendIDs(b, p.out)
	b = append(b, `],"meta_info":{"id":"`...)
	b = append(b, rid...)
	b = append(b, `","finish_reason":`...)
	switch {
	case !p.done:
		b = append(b, "null"...)
	case p.aborted:
		b = append(b, `{"type":"abort","message":"Abort in waiting queue or running batch","status_code":null,"err_type":null}`...)
	default:
		b = field(b, `{"type":"length","length":`, p.out)
		b = append(b, '}')
	}
	b = field(b, `,"prompt_tokens":`, a.prompt.Len)
	b = append(b, `,"weight_version":"default"`...)
	b = field(b, `,"num_retractions":`, p.retracted)
	b = field(b, `,"completion_tokens":`, p.out)
	b = field(b, `,"cached_tokens":`, p.cached)
	return append(b, "}}"...)
}

// tokenizeResponse is /tokenize for one text or several.
func tokenizeResponse(texts []string, single bool, special bool, vocab, maxLen int) []byte {
	b := []byte(`{"tokens":`)
	var counts []byte
	for i, t := range texts {
		ids := tokenize(t, vocab, special)
		if i == 0 && !single {
			b, counts = append(b, '['), append(counts, '[')
		}
		if i > 0 {
			b, counts = append(b, ','), append(counts, ',')
		}
		b = append(b, '[')
		for k, id := range ids {
			if k > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendUint(b, uint64(id), 10)
		}
		b = append(b, ']')
		counts = strconv.AppendInt(counts, int64(len(ids)), 10)
	}
	if !single {
		if len(texts) == 0 {
			b, counts = append(b, '['), append(counts, '[')
		}
		b, counts = append(b, ']'), append(counts, ']')
	}
	b = append(b, `,"count":`...)
	b = append(b, counts...)
	b = field(b, `,"max_model_len":`, maxLen)
	return append(b, '}')
}
