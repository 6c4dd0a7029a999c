package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sgtune/tuner/physics"
)

// suggestSpace is the search space in the order of init.
type suggestSpace []*suggestKnob

// newSuggestSpace reads the space under the rules of the facts.
func newSuggestSpace(specs []suggestSpec, facts *suggestFacts) (suggestSpace, error) {
	if len(specs) == 0 {
		return nil, errors.New(`space has no knob; give a list like [{"name":"mem_fraction_static","type":"float","low":0.8,"high":0.93,"step":0.005}]`)
	}
	var space suggestSpace
	names := map[string]bool{}
	for i := range specs {
		s := &specs[i]
		if s.Name == "" {
			return nil, fmt.Errorf("space[%d] has no name", i)
		}
		rule, top := facts.rule(s)
		k, err := newSuggestKnob(s, rule, top)
		if err != nil {
			return nil, fmt.Errorf("space[%d] %s: %w", i, quoted(s.Name), err)
		}
		key := s.Name
		if k.knob.Role != physics.RoleOther {
			key = k.flag
		}
		if names[key] {
			return nil, fmt.Errorf("space[%d] %s is there twice; leave one out", i, quoted(s.Name))
		}
		names[key] = true
		space = append(space, k)
	}
	space.linkHostPool()
	return space, nil
}

// linkHostPool tells the knobs of the hierarchical cache that they do nothing while it has no memory.
func (s suggestSpace) linkHostPool() {
	pool := slices.IndexFunc(s, func(k *suggestKnob) bool { return k.knob.Role == physics.RoleHostPool })
	for i, k := range s {
		if i != pool && strings.HasPrefix(k.flag, "hicache-") {
			k.knob.Needs = pool
		}
	}
}

// physics is the space as the search takes it.
func (s suggestSpace) physics() physics.Space {
	out := make(physics.Space, len(s))
	for i, k := range s {
		out[i] = k.knob
	}
	return out
}

// start is the point nearest to the defaults. Knobs that they lack, or whose default is none of the
// choices, begin where first says.
func (s suggestSpace) start(defaults map[string]json.RawMessage) physics.Point {
	p := make(physics.Point, len(s))
	for i, k := range s {
		p[i] = -1
		if raw, has := defaults[k.knob.Name]; has {
			if v, err := scalar(raw); err == nil {
				p[i] = k.find(v)
			}
		}
		if p[i] < 0 {
			p[i] = k.first()
		}
	}
	return p
}

// point is where a configuration lies, at the nearest values; knobs it lacks are as in home, other
// names in it are not looked at. keptOut says why nothing may be learnt from it: a rule keeps one of
// its values out of the search, and the nearest admitted one would be blamed for it.
func (s suggestSpace) point(config map[string]json.RawMessage, home physics.Point) (p physics.Point, keptOut string, err error) {
	p = slices.Clone(home)
	found := 0
	for i, k := range s {
		raw, has := config[k.knob.Name]
		if !has {
			continue
		}
		found++
		v, err := scalar(raw)
		if err != nil {
			return nil, "", fmt.Errorf("obs.config %s %w", quoted(k.knob.Name), err)
		}
		if why := k.rule(v); why != "" {
			keptOut = why
			continue
		}
		if p[i] = k.find(v); p[i] < 0 {
			return nil, "", fmt.Errorf("obs.config: %s is %s; %s", quoted(k.knob.Name), shortened(string(raw)), k.expects())
		}
	}
	if found == 0 {
		return nil, "", errors.New(`obs.config has no knob of the space; give the configuration that ran, like {"` + s[0].knob.Name + `":` + string(s[0].words[0]) + `}`)
	}
	return p, keptOut, nil
}

// expects says what a value may be.
func (k *suggestKnob) expects() string {
	if k.numbers {
		return "give a number"
	}
	const most = 8
	words := make([]string, 0, most)
	for _, w := range k.words[:min(most, len(k.words))] {
		words = append(words, string(w))
	}
	if len(k.words) > most {
		words = append(words, "...")
	}
	return "its choices are " + strings.Join(words, ", ")
}

// config is a point in the words of init.
func (s suggestSpace) config(p physics.Point) orderedConfig {
	c := orderedConfig{names: make([]string, len(s)), values: make([]json.RawMessage, len(s))}
	for i, k := range s {
		c.names[i], c.values[i] = k.knob.Name, k.words[p[i]]
	}
	return c
}
