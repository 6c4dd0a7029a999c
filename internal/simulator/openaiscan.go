package simulator

import (
	"bytes"
	"math"
	"strconv"
)

// ask is a body of /v1/completions or /v1/chat/completions as far as it changes anything here.
type ask struct {
	chat      bool
	rid       string
	model     string // JSON, as it was sent
	prompt    Prompt
	maxNew    int  // tokens to generate, 0 = no limit was given
	minNew    int  // min_tokens
	ignoreEOS bool // without a limit: generate to the end of the context
	stream    bool
	usage     bool // stream_options.include_usage
	running   bool // stream_options.continuous_usage_stats
}

// asker reads the bodies of one server; a new one for each body.
type asker struct {
	scanner
	ask
	d     *dialect
	vocab int
	given bool // the body names a model
}

func newAsker(d *dialect, vocab int, body []byte) *asker {
	return &asker{scanner: scanner{b: body}, ask: ask{model: `"default"`}, d: d, vocab: vocab}
}

// wholeBody reads the one object of a body; key must consume each value.
func (a *asker) wholeBody(key func(key []byte) error) error {
	if c := a.peek(); c != '{' && c != 0 {
		input, err := a.raw()
		if err != nil {
			return err
		}
		if a.peek() != 0 {
			return errJSON
		}
		return &fieldError{kind: "model_attributes_type", msg: "Input should be a valid dictionary or object to extract fields from", input: input}
	}
	if err := a.object(key); err != nil {
		return err
	}
	if a.space(); a.i != len(a.b) {
		return errJSON
	}
	if !a.given && a.d.release <= r049 {
		return a.missing("model")
	}
	return nil
}

// missing is the refusal of a body without a field it must have.
func (a *asker) missing(name string) error {
	return &fieldError{kind: "missing", loc: "'" + name + "'", msg: "Field required", input: a.b}
}

// common reads the fields both endpoints have; false when the key is not one of them.
func (a *asker) common(key []byte) (known bool, err error) {
	switch string(key) {
	case "model":
		err = a.modelName()
	case "rid":
		if a.peek() == '"' {
			a.rid, err = a.text()
		} else {
			err = a.skip()
		}
	case "stream":
		a.stream, err = a.flag()
	case "ignore_eos":
		a.ignoreEOS, err = a.flag()
	case "min_tokens":
		a.minNew, err = a.integer("min_tokens")
	case "n":
		var n int
		if n, err = a.integer("n"); err == nil && n > 1 {
			err = badRequest("n = %d is not simulated: send one request for each answer", n)
		}
	case "stream_options":
		err = a.streamOptions()
	default:
		return false, nil
	}
	return true, err
}

func (a *asker) modelName() error {
	name, err := a.raw()
	if err != nil {
		return err
	}
	if len(name) == 0 || name[0] != '"' {
		return &fieldError{kind: "string_type", loc: "'model'", msg: "Input should be a valid string", input: name}
	}
	a.given, a.model = true, string(name)
	return nil
}

func (a *asker) streamOptions() error {
	if a.peek() != '{' {
		return a.skip() // null
	}
	return a.object(func(key []byte) (err error) {
		switch string(key) {
		case "include_usage":
			a.usage, err = a.flag()
		case "continuous_usage_stats":
			a.running, err = a.flag()
		default:
			err = a.skip()
		}
		return err
	})
}

// flag reads a truth value; null is false.
func (a *asker) flag() (bool, error) {
	w, err := a.word()
	return string(w) == "true", err
}

// integer reads a number, as pydantic does: "12" and 12.0 are 12 too. null is 0.
func (a *asker) integer(name string) (int, error) {
	input, err := a.raw()
	if err != nil || string(input) == "null" {
		return 0, err
	}
	text := bytes.Trim(input, `"`)
	if n, err := strconv.Atoi(string(text)); err == nil {
		return n, nil
	}
	if x, err := strconv.ParseFloat(string(text), 64); err == nil && x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return int(x), nil
	}
	wrong := &fieldError{kind: "int_type", loc: "'" + name + "'", msg: "Input should be a valid integer", input: input}
	switch {
	case input[0] == '"':
		wrong.kind, wrong.msg = "int_parsing", "Input should be a valid integer, unable to parse string as an integer"
	case input[0] == '-' || input[0] >= '0' && input[0] <= '9':
		wrong.kind, wrong.msg = "int_from_float", "Input should be a valid integer, got a number with a fractional part"
	}
	return 0, wrong
}

// parseCompletion reads a body of /v1/completions.
func parseCompletion(a *asker) error {
	a.maxNew = 16
	prompted := false
	err := a.wholeBody(func(key []byte) error {
		switch string(key) {
		case "prompt":
			prompted = true
			return a.readPrompt()
		case "max_tokens":
			n, err := a.integer("max_tokens")
			if err == nil && n <= 0 {
				const text = "max_tokens must be positive"
				err = &fieldError{kind: "value_error", loc: "'max_tokens'", msg: "Value error, " + text, input: strconv.AppendInt(nil, int64(n), 10), ctx: "ValueError('" + text + "')"}
			}
			a.maxNew = n
			return err
		case "echo":
			if echo, err := a.flag(); err != nil || !echo {
				return err
			}
			return badRequest("echo is not simulated")
		}
		if known, err := a.common(key); known {
			return err
		}
		return a.skip()
	})
	switch {
	case err != nil:
		return err
	case !prompted:
		return a.missing("prompt")
	case a.prompt.Len == 0:
		return badRequest("Prompt cannot be empty")
	}
	return nil
}

// readPrompt takes a text, a list of ids, or a list with one of either.
func (a *asker) readPrompt() error {
	switch a.peek() {
	case '"':
		return a.readText()
	case '[':
	default:
		input, err := a.raw()
		if err != nil {
			return err
		}
		return &fieldError{kind: "list_type", loc: "'prompt', 'list[int]'", msg: "Input should be a valid list", input: input}
	}
	start := a.i
	a.i++
	first := a.peek()
	if a.i = start; first != '"' && first != '[' {
		p, err := a.ids()
		a.prompt = p
		return err
	}
	items := 0
	return a.array(func() (err error) {
		if items++; items > 1 {
			return badRequest("batches of prompts are not simulated: send one prompt a request")
		}
		if a.peek() == '"' {
			return a.readText()
		}
		a.prompt, err = a.ids()
		return err
	})
}

// readText takes a prompt of words; an empty one stays empty, without a start token.
func (a *asker) readText() error {
	text, err := a.text()
	if err == nil && text != "" {
		a.prompt = textPrompt(text, a.vocab)
	}
	return err
}
