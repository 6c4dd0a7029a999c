package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sgtune/tuner/physics"
)

// suggestSession answers requests one by one; an init begins anew.
type suggestSession struct {
	problem *suggestProblem // nil before the first init, and after a wrong one
}

// suggestProblem is the search of one init.
type suggestProblem struct {
	knobs   suggestSpace
	start   physics.Point
	search  *physics.Search
	pending []physics.Suggestion // suggested, not yet observed; the oldest first
}

// maxPending is how many suggestions may wait for their result; the oldest are forgotten.
const maxPending = 32

// suggestRequest is a line; which keys count depends on op.
type suggestRequest struct {
	Op     *string               `json:"op"`
	Space  []suggestSpec         `json:"space"`
	Facts  suggestFacts          `json:"facts"`
	Budget float64               `json:"budget"`
	Seed   json.RawMessage       `json:"seed"`
	Obs    *suggestedObservation `json:"obs"`
}

// suggestOps are what a request may ask for.
const suggestOps = "init, suggest, observe, recommend or exit"

// answer is the reply to a request, one line; end is true when no other shall follow.
func (s *suggestSession) answer(line []byte) (reply []byte, end bool) {
	var r suggestRequest
	if err := parseSuggest(line, &r); err != nil {
		if r.Op != nil && *r.Op == "init" {
			s.problem = nil
		}
		return suggestError(err), false
	}
	if r.Op == nil {
		return suggestError(fmt.Errorf(`the request has no "op"; use %s`, suggestOps)), false
	}
	v, err := s.do(*r.Op, &r)
	if err != nil {
		return suggestError(err), false
	}
	return suggestReply(v), *r.Op == "exit"
}

// do is the reply to a request as a value.
func (s *suggestSession) do(op string, r *suggestRequest) (any, error) {
	switch op {
	case "exit":
		return suggestOK{OK: true}, nil
	case "init":
		var err error
		s.problem, err = newSuggestProblem(r)
		return suggestOK{OK: true}, err
	case "suggest", "observe", "recommend":
		if s.problem == nil {
			return nil, fmt.Errorf(`%s needs a search; send {"op":"init","space":[...],"facts":{...}} first`, op)
		}
	default:
		return nil, fmt.Errorf("op %s is not known; use %s", quoted(op), suggestOps)
	}
	switch op {
	case "suggest":
		return s.problem.suggest(), nil
	case "observe":
		return s.problem.observe(r.Obs)
	}
	return s.problem.recommend(), nil
}

func newSuggestProblem(r *suggestRequest) (*suggestProblem, error) {
	if err := r.Facts.check(); err != nil {
		return nil, err
	}
	if r.Budget < 0 || r.Budget != float64(int(r.Budget)) {
		return nil, fmt.Errorf("budget is %v; give the number of trials, or leave it out", r.Budget)
	}
	knobs, err := newSuggestSpace(r.Space, &r.Facts)
	if err != nil {
		return nil, err
	}
	p := &suggestProblem{knobs: knobs, start: knobs.start(r.Facts.Defaults)}
	facts := r.Facts.physics(knobs)
	facts.Start, facts.Budget, facts.Seed = p.start, int(r.Budget), suggestSeed(r.Seed)
	p.search = physics.New(knobs.physics(), facts)
	return p, nil
}

func (p *suggestProblem) suggest() any {
	waiting := make([]physics.Point, len(p.pending))
	for i, s := range p.pending {
		waiting[i] = s.Point
	}
	next, ok := p.search.Suggest(waiting)
	if !ok {
		return suggestStop{Stop: true}
	}
	if len(p.pending) == maxPending {
		p.pending = slices.Delete(p.pending, 0, 1)
	}
	p.pending = append(p.pending, next)
	return newSuggestAnswer(p.knobs.config(next.Point), next)
}

func (p *suggestProblem) observe(obs *suggestedObservation) (any, error) {
	if obs == nil {
		return nil, errors.New(`observe needs "obs", an object with config and status`)
	}
	point, keptOut, err := p.knobs.point(obs.Config, p.start)
	if err != nil {
		return nil, err
	}
	o, err := obs.physics(point)
	if err != nil {
		return nil, err
	}
	p.arrived(point)
	if keptOut != "" {
		return suggestOK{OK: true, Ignored: keptOut}, nil
	}
	p.search.Observe(o)
	return suggestOK{OK: true}, nil
}

// arrived takes the suggestion that an observation answers off the pending ones: the one of its
// configuration, or the oldest, when somebody changed it before the launch.
func (p *suggestProblem) arrived(point physics.Point) {
	if len(p.pending) == 0 {
		return
	}
	i := slices.IndexFunc(p.pending, func(s physics.Suggestion) bool { return s.Point.Equal(point) })
	p.pending = slices.Delete(p.pending, max(i, 0), max(i, 0)+1)
}

func (p *suggestProblem) recommend() any {
	point, ok := p.search.Recommend()
	if !ok {
		return suggestConfig{}
	}
	config := p.knobs.config(point)
	return suggestConfig{Config: &config}
}

// parseSuggest reads a request; its errors say what to write instead. What could be read before the
// mistake is in r.
func parseSuggest(line []byte, r *suggestRequest) error {
	if !utf8.Valid(line) {
		return errors.New("the line is not UTF-8; send JSON")
	}
	err := json.Unmarshal(line, r)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf(`no JSON at byte %d: %w; send one object a line, like {"op":"suggest"}`, syntax.Offset, err)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s is a JSON %s; %s", kind.Field, kind.Value, suggestKind(kind.Type.Kind().String()))
	}
	return fmt.Errorf("the request cannot be read: %w; docs/suggest.md has the keys", err)
}

// suggestKind is what a key must hold, by the Go kind it is read into.
func suggestKind(kind string) string {
	switch kind {
	case "float64":
		return "give a number, or leave it out when it is not known"
	case "bool":
		return "give true or false"
	case "slice":
		return "give a list"
	case "struct", "map":
		return "give an object"
	}
	return "give a " + strings.TrimSuffix(kind, "8")
}
