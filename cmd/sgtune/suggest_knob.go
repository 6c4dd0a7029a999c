package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"sgtune/sglang"
	"sgtune/tuner/physics"
)

// suggestSpec is a knob as init gives it.
type suggestSpec struct {
	Name    string            `json:"name"`
	Type    string            `json:"type"` // float, int, cat, cat_ord
	Low     json.RawMessage   `json:"low"`
	High    json.RawMessage   `json:"high"`
	Step    json.RawMessage   `json:"step"`
	Log     bool              `json:"log"`
	Choices []json.RawMessage `json:"choices"`
}

// suggestKnob is a knob of the search: its values, how each is written in a reply, and how one is
// found that somebody wrote.
type suggestKnob struct {
	flag    string // SGLang's spelling of the name
	knob    physics.Knob
	words   []json.RawMessage // of each value
	known   []any             // each value decoded: float64, string, bool or nil
	numbers bool              // all values are numbers: what lies between two is the nearer one
	rule    func(v any) string
}

// flagOf is SGLang's spelling of a knob's name.
func flagOf(name string) string {
	return strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
}

// newSuggestKnob reads a knob. rule says why a value is kept out of the search, "" when it is not;
// top is the largest number it admits.
func newSuggestKnob(s *suggestSpec, rule func(v any) string, top float64) (*suggestKnob, error) {
	k := &suggestKnob{flag: flagOf(s.Name), rule: rule}
	k.knob = physics.Knob{Name: s.Name, Role: physics.RoleOf(k.flag), Needs: -1}
	var err error
	switch s.Type {
	case "float", "int":
		err = k.fromRange(s, top)
	case "cat", "cat_ord":
		err = k.fromChoices(s)
	case "":
		err = errors.New("type is missing; use float, int, cat or cat_ord")
	default:
		err = fmt.Errorf("type %s is not known; use float, int, cat or cat_ord", quoted(s.Type))
	}
	return k, err
}

func (k *suggestKnob) fromRange(s *suggestSpec, top float64) error {
	g, err := newGrid(s)
	if err != nil {
		return err
	}
	k.numbers, k.knob.Log = true, s.Log
	if lowest, _ := g.at(0); !g.clip(top) {
		return fmt.Errorf("low is %v, but %s", lowest, k.rule(lowest))
	}
	for _, i := range g.picks() {
		v, word := g.at(i)
		if k.rule(v) == "" {
			k.add(v, word)
		}
	}
	k.settle(true)
	return k.nonempty()
}

func (k *suggestKnob) fromChoices(s *suggestSpec) error {
	const most = 1000
	if len(s.Choices) == 0 || len(s.Choices) > most {
		return fmt.Errorf("%d choices; give 1 to %d", len(s.Choices), most)
	}
	k.numbers = true
	seen := map[any]bool{}
	for _, raw := range s.Choices {
		v, err := scalar(raw)
		switch {
		case err != nil:
			return fmt.Errorf("choice %w", err)
		case seen[v]:
			return fmt.Errorf("choice %s stands there twice; leave one out", shortened(string(raw)))
		}
		seen[v] = true
		if k.rule(v) == "" {
			_, isNumber := v.(float64)
			k.numbers = k.numbers && isNumber
			k.add(v, raw)
		}
	}
	k.settle(s.Type == "cat_ord" || k.knob.Role != physics.RoleOther && k.knob.Role != physics.RoleKVDtype)
	return k.nonempty()
}

func (k *suggestKnob) add(v any, word json.RawMessage) {
	k.known, k.words = append(k.known, v), append(k.words, slices.Clone(word))
}

// settle gives the search the values: ascending numbers, positions of other ordered choices, or
// positions of choices without an order. A role whose physics needs numbers goes to no other knob.
func (k *suggestKnob) settle(ordered bool) {
	if !k.numbers && k.knob.Role != physics.RoleKVDtype {
		k.knob.Role = physics.RoleOther
	}
	k.knob.Kind = physics.Unordered
	if ordered {
		k.knob.Kind = physics.Ordered
	}
	if ordered && k.numbers {
		order := make([]int, len(k.known))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int { return int(math.Copysign(1, k.number(i)-k.number(j))) })
		known, words := slices.Clone(k.known), slices.Clone(k.words)
		for to, from := range order {
			k.known[to], k.words[to] = known[from], words[from]
			k.knob.Values = append(k.knob.Values, k.number(to))
		}
		return
	}
	for i := range k.known {
		k.knob.Values = append(k.knob.Values, float64(i))
	}
}

func (k *suggestKnob) number(i int) float64 {
	v, _ := k.known[i].(float64)
	return v
}

func (k *suggestKnob) nonempty() error {
	if len(k.known) == 0 {
		return errors.New("no value is left that the rules admit; allow a smaller one, or bf16")
	}
	return nil
}

// find is the position of a value: itself, or of numbers the nearest; -1 when it is none of the choices.
func (k *suggestKnob) find(v any) int {
	if i := slices.Index(k.known, v); i >= 0 {
		return i
	}
	x, isNumber := v.(float64)
	if !isNumber || !k.numbers {
		return -1
	}
	best := 0
	for i := range k.known {
		if math.Abs(k.number(i)-x) < math.Abs(k.number(best)-x) {
			best = i
		}
	}
	return best
}

// first is where the search starts when nothing says what runs today: SGLang's own default, else
// the careful end of the memory knobs, the middle of other numbers, the first choice.
func (k *suggestKnob) first() int {
	if known, ok := sglang.Lookup(k.flag); ok && known.Default != nil {
		if i := slices.Index(k.known, known.Default); i >= 0 {
			return i
		}
		x, isNumber := known.Default.(float64)
		if isNumber && k.numbers && k.knob.Kind == physics.Ordered && x >= k.number(0) && x <= k.number(len(k.known)-1) {
			return k.find(x)
		}
	}
	careful := k.knob.Role == physics.RoleMemFraction || k.knob.Role == physics.RoleHostPool
	if k.knob.Kind == physics.Unordered || careful {
		return 0
	}
	return len(k.known) / 2
}

// scalar decodes a choice: a number, string, boolean or null.
func scalar(raw json.RawMessage) (any, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", shortened(string(raw)), err)
	}
	switch v.(type) {
	case []any, map[string]any:
		return nil, fmt.Errorf("%s is a list or object; give a number, string or boolean", shortened(string(raw)))
	}
	return v, nil
}
