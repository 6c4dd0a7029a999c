package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"sgtune/tuner/physics"
)

// suggestOK takes note of a request.
type suggestOK struct {
	OK      bool   `json:"ok"`
	Ignored string `json:"ignored,omitempty"` // why nothing was learnt from an observation
}

// suggestStop says that no configuration is left to try.
type suggestStop struct {
	Stop bool `json:"stop"`
}

// suggestConfig is a recommendation; null when there is none.
type suggestConfig struct {
	Config *orderedConfig `json:"config"`
}

// suggestAnswer is the next trial. docs/suggest.md describes the keys.
type suggestAnswer struct {
	Config      orderedConfig `json:"config"`
	MeasureFrac *float64      `json:"measure_frac,omitempty"`
	AbortBelow  float64       `json:"abort_below,omitempty"`
	AbortFrac   float64       `json:"abort_frac,omitempty"`
	Why         suggestWhy    `json:"why"`
}

// suggestWhy are the reason's figures; those that are not known are left out.
type suggestWhy struct {
	Kind         string   `json:"kind"`
	Mean         *float64 `json:"mean,omitempty"`
	Spread       *float64 `json:"spread,omitempty"`
	Best         *float64 `json:"best,omitempty"`
	Gain         *float64 `json:"gain,omitempty"`
	OOM          *float64 `json:"oom,omitempty"`
	Crash        *float64 `json:"crash,omitempty"`
	Tokens       *float64 `json:"tokens,omitempty"`
	FreeGB       *float64 `json:"free_gb,omitempty"`
	Teaches      string   `json:"teaches,omitempty"`
	TeachesShare *float64 `json:"teaches_share,omitempty"`
}

func newSuggestAnswer(config orderedConfig, s physics.Suggestion) suggestAnswer {
	a := suggestAnswer{Config: config, MeasureFrac: shortFigure(s.Frac, -1)}
	if below := shortFigure(s.AbortBelow, 6); below != nil && *below > 0 {
		a.AbortBelow = *below
		if frac := shortFigure(s.AbortFrac, -1); frac != nil {
			a.AbortFrac = *frac
		}
	}
	w := s.Why
	a.Why = suggestWhy{
		Kind: w.Kind, Mean: shortFigure(w.Mean, 4), Spread: shortFigure(w.Spread, 3), Best: shortFigure(w.Best, 4), Gain: shortFigure(w.Gain, 3),
		OOM: shortFigure(w.OOM, 3), Crash: shortFigure(w.Crash, 3), Tokens: shortFigure(w.Tokens, 6), FreeGB: shortFigure(w.FreeGiB, 4),
	}
	if w.Teaches != "" {
		a.Why.Teaches, a.Why.TeachesShare = w.Teaches, shortFigure(w.TeachesX, 3)
	}
	return a
}

// shortFigure is a number of so many digits, -1 = all; nil when it is not known.
func shortFigure(v float64, digits int) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64); err == nil {
		v = short
	}
	return &v
}

// orderedConfig is a configuration whose knobs keep the order of the space and the words of its
// values.
type orderedConfig struct {
	names  []string
	values []json.RawMessage
}

// MarshalJSON writes the knobs in their order.
func (c orderedConfig) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, name := range c.names {
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		b.WriteByte("{,"[min(i, 1)])
		b.Write(key)
		b.WriteByte(':')
		b.Write(c.values[i])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// suggestReply is a reply as its line.
func suggestReply(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return suggestError(err)
	}
	return b.Bytes()
}

// suggestError is the reply to a request that could not be done.
func suggestError(err error) []byte {
	const most = 400
	if err == nil {
		return nil
	}
	text := strings.ToValidUTF8(printable(err.Error()), "")
	if letters := []rune(text); len(letters) > most {
		text = string(letters[:most-3]) + "..."
	}
	b, _ := json.Marshal(struct { // a string has a JSON form
		Error string `json:"error"`
	}{text})
	return append(b, '\n')
}

// quoted is a word of a request, in quotes.
func quoted(text string) string { return strconv.Quote(shortened(text)) }

// shortened is a part of a request as an error names it.
func shortened(text string) string {
	const most = 60
	if letters := []rune(text); len(letters) > most {
		text = string(letters[:most]) + "..."
	}
	return text
}
