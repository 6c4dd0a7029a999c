package simulator

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// genRequest is a /generate body. The scanner below reads it without reflection or garbage: a replay
// may send thousands of prompts of a thousand ids each second.
type genRequest struct {
	rid     string
	prompt  Prompt
	hasText bool
	ids     bool
	maxNew  int
	limited bool // maxNew was given
	stream  bool
}

var errJSON = errors.New("invalid JSON body")

// hasher folds token ids into a Prompt as they are read.
type hasher struct {
	p Prompt
	h uint64
}

func newHasher(room int) hasher {
	return hasher{h: chainSeed, p: Prompt{Blocks: make([]uint64, 0, room/blockTokens+1)}}
}

func (x *hasher) add(id uint32) {
	x.h = fold(x.h, id)
	x.p.Len++
	if x.p.Rest++; x.p.Rest == blockTokens {
		x.h = mix(x.h)
		x.p.Blocks = append(x.p.Blocks, x.h)
		x.p.Rest = 0
	}
}

func (x *hasher) prompt() Prompt {
	x.p.Tail = x.h
	return x.p
}

// scanner is a cursor over one JSON text.
type scanner struct {
	b     []byte
	i     int
	depth int // objects and arrays that are open
}

// deepest is how many a body may open: what nests deeper is an attack on the stack, not a request.
const deepest = 200

// open counts one more.
func (s *scanner) open() error {
	if s.depth++; s.depth > deepest {
		return errJSON
	}
	return nil
}

func (s *scanner) close() { s.depth-- }

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

// next skips space and consumes c if it is there.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// object calls f for each key of an object; f must consume the value.
func (s *scanner) object(f func(key []byte) error) error {
	if !s.next('{') || s.open() != nil {
		return errJSON
	}
	defer s.close()
	if s.next('}') {
		return nil
	}
	for {
		s.space()
		key, err := s.rawString()
		if err != nil {
			return err
		}
		if !s.next(':') {
			return errJSON
		}
		if err := f(key); err != nil {
			return err
		}
		if s.next('}') {
			return nil
		}
		if !s.next(',') {
			return errJSON
		}
	}
}

// rawString returns a string's bytes between the quotes, escapes as they are.
func (s *scanner) rawString() ([]byte, error) {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return nil, errJSON
	}
	from := s.i + 1
	end := bytes.IndexByte(s.b[from:], '"')
	if end < 0 {
		return nil, errJSON
	}
	escape := bytes.IndexByte(s.b[from:from+end], '\\')
	if escape < 0 {
		s.i = from + end + 1
		return s.b[from : from+end], nil
	}
	for j := from + escape; j < len(s.b); j++ {
		switch s.b[j] {
		case '\\':
			j++
		case '"':
			s.i = j + 1
			return s.b[from:j], nil
		}
	}
	return nil, errJSON
}

// text returns a string with its escapes undone.
func (s *scanner) text() (string, error) {
	s.space()
	from := s.i
	raw, err := s.rawString()
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), nil
	}
	return decodeString(s.b[from:s.i])
}

// word returns the bytes of a number, true, false or null.
func (s *scanner) word() ([]byte, error) {
	s.space()
	from := s.i
	for s.i < len(s.b) && strings.IndexByte(",]} \n\t\r", s.b[s.i]) < 0 {
		s.i++
	}
	w := s.b[from:s.i]
	switch string(w) {
	case "true", "false", "null":
		return w, nil
	}
	if len(w) == 0 || w[0] != '-' && (w[0] < '0' || w[0] > '9') {
		s.i = from
		return nil, errJSON
	}
	return w, nil
}

// raw consumes any value and returns its text; it is part of the body, which is reused.
func (s *scanner) raw() ([]byte, error) {
	s.space()
	from := s.i
	err := s.skip()
	return s.b[from:s.i], err
}

// peek skips space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.space(); s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// array calls f for each item of an array; f must consume it.
func (s *scanner) array(f func() error) error {
	if !s.next('[') || s.open() != nil {
		return errJSON
	}
	defer s.close()
	if s.next(']') {
		return nil
	}
	for {
		if err := f(); err != nil {
			return err
		}
		if s.next(']') {
			return nil
		}
		if !s.next(',') {
			return errJSON
		}
	}
}

// skip consumes any value.
func (s *scanner) skip() error {
	s.space()
	if s.i >= len(s.b) {
		return errJSON
	}
	switch s.b[s.i] {
	case '"':
		_, err := s.rawString()
		return err
	case '{':
		return s.object(func([]byte) error { return s.skip() })
	case '[':
		return s.array(s.skip)
	}
	_, err := s.word()
	return err
}

// ids reads an array of token ids straight into a prompt.
func (s *scanner) ids() (Prompt, error) {
	if !s.next('[') {
		return Prompt{}, errJSON
	}
	x := newHasher((len(s.b) - s.i) / 5)
	if s.next(']') {
		return x.prompt(), nil
	}
	for {
		s.space()
		if s.i < len(s.b) && s.b[s.i] == '[' {
			return Prompt{}, errors.New("batches of input_ids are not simulated: send one prompt a request")
		}
		id, from := uint32(0), s.i
		for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
			id = id*10 + uint32(s.b[s.i]-'0')
			s.i++
		}
		if s.i == from || s.i-from > 9 {
			return Prompt{}, errJSON
		}
		x.add(id)
		if s.i < len(s.b) && s.b[s.i] == ',' {
			s.i++
			continue
		}
		if s.next(']') {
			return x.prompt(), nil
		}
		if !s.next(',') {
			return Prompt{}, errJSON
		}
	}
}

// parseGenerate reads a /generate body.
func parseGenerate(body []byte, vocab int) (genRequest, error) {
	g := genRequest{maxNew: 128}
	s := &scanner{b: body}
	err := s.object(func(key []byte) (err error) {
		switch string(key) {
		case "input_ids":
			g.ids = true
			g.prompt, err = s.ids()
		case "text":
			var text string
			if text, err = s.text(); err == nil {
				g.hasText = true
				g.prompt = textPrompt(text, vocab)
			}
		case "rid":
			if s.space(); s.i < len(s.b) && s.b[s.i] == '"' {
				g.rid, err = s.text()
			} else {
				err = s.skip()
			}
		case "stream":
			var w []byte
			w, err = s.word()
			g.stream = string(w) == "true"
		case "sampling_params":
			err = s.sampling(&g)
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return g, err
	}
	if s.space(); s.i != len(s.b) {
		return g, errJSON
	}
	if g.hasText == g.ids {
		return g, errors.New("either text or input_ids should be provided")
	}
	if g.prompt.Len == 0 {
		return g, errors.New("the prompt is empty")
	}
	return g, nil
}

func (s *scanner) sampling(g *genRequest) error {
	if s.space(); s.i < len(s.b) && s.b[s.i] != '{' {
		return s.skip()
	}
	return s.object(func(key []byte) error {
		if string(key) != "max_new_tokens" {
			return s.skip()
		}
		w, err := s.word()
		if err != nil || string(w) == "null" {
			return err
		}
		n, err := strconv.Atoi(string(w))
		if err != nil || n < 0 {
			return fmt.Errorf("max_new_tokens must be at least 0, got %s", w)
		}
		g.maxNew, g.limited = n, true
		return nil
	})
}
