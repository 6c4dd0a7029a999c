package physics

// layout is what all models share: where physics' own knobs are, and which other ones might cost
// memory or not start.
type layout struct {
	space    Space
	facts    Facts
	home     Point
	role     [roles]int
	suspects []int // knobs whose values may keep a server from starting, alone or in pairs
	trusted  []int // knobs that physics knows and whose choices may do so too, though it is not expected
	first    []int // by knob: place of its first choice among the memory features, -1 = it has none
	choices  int   // memory features in all
	numbers  [][]float64
	host     hostLine
	later    bool // what is slow is learnt when all of a batch was shown (Review)
}

// fewValues is the most numbers a knob may have to be suspected by value: a range does not crash at
// one of its numbers.
const fewValues = 16

func newLayout(space Space, facts Facts) *layout {
	l := &layout{space: space, facts: facts, home: facts.Start, first: make([]int, len(space))}
	for r := range l.role {
		l.role[r] = space.Role(Role(r))
	}
	for i, k := range space {
		l.first[i] = -1
		units := make([]float64, len(k.Values))
		for j := range k.Values {
			units[j] = k.Unit(j)
		}
		l.numbers = append(l.numbers, units)
		if len(k.Values) < 2 {
			continue
		}
		if k.Role == RoleKVDtype || k.Role == RoleHostPool {
			l.trusted = append(l.trusted, i)
		}
		if k.Role != RoleOther {
			continue
		}
		if len(k.Values) <= fewValues || k.Kind == Unordered {
			l.suspects = append(l.suspects, i)
		}
		if k.Kind == Unordered {
			l.first[i] = l.choices
			l.choices += len(k.Values)
		}
	}
	if l.facts.PoolBytes <= 0 {
		l.facts.PoolBytes = 1e9
	}
	l.facts.Ranks = max(1, l.facts.Ranks)
	l.facts.Load.SharedTokens = clamp(l.facts.Load.SharedTokens, 0, l.facts.Load.InputTokens)
	return l
}

// value is the number of a role at p: its knob's, else the fixed one, else Unknown.
func (l *layout) value(p Point, r Role) float64 {
	if i := l.role[r]; i >= 0 {
		return l.space[i].Values[p[i]]
	}
	if v, ok := l.facts.Fixed[r]; ok {
		return v
	}
	return Unknown
}

// or is value with a stand-in for what is not known.
func (l *layout) or(p Point, r Role, otherwise float64) float64 {
	if v := l.value(p, r); known(v) {
		return v
	}
	return otherwise
}

// Stand-ins where a role is neither in the space nor fixed: SGLang's usual defaults (server_args.py,
// sgtune's shared reference on SGLang, sections 1 and 2).
const (
	usualFraction = 0.88
	usualChunk    = 8192
	usualRunning  = 256
	usualGraphBS  = 160
	wholePrompt   = 131072 // stands for chunked-prefill-size -1: the whole prompt at once
)

func (l *layout) chunk(p Point) float64 {
	if c := l.or(p, RoleChunk, usualChunk); c > 0 {
		return c
	}
	return wholePrompt
}

func (l *layout) pool(p Point) float64 { return max(0, l.or(p, RoleHostPool, 0)) }

// cellScale is the size of a KV token at p relative to bf16.
func (l *layout) cellScale(p Point) float64 {
	i := l.role[RoleKVDtype]
	if i < 0 || p[i] >= len(l.facts.CellScale) || l.facts.CellScale[p[i]] <= 0 {
		return 1
	}
	return l.facts.CellScale[p[i]]
}

// eachChoice calls do with the memory feature of each unordered knob's choice at p.
func (l *layout) eachChoice(p Point, do func(feature int)) {
	for i, at := range l.first {
		if at >= 0 {
			do(at + p[i])
		}
	}
}

// hostFits is the hard rule for host pools: within the limit that the facts know, and below what was
// seen to be too large.
func (l *layout) hostFits(p Point) bool {
	pool := l.pool(p)
	return (l.facts.HostGB <= 0 || pool*float64(l.facts.Ranks) <= l.facts.HostGB+1e-9) && l.host.fits(pool)
}

// admits reports whether a point may be launched at all.
func (l *layout) admits(p Point) bool {
	return l.hostFits(p) && (l.facts.Admit == nil || l.facts.Admit(p))
}
