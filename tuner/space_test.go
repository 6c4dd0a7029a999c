package tuner_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/tuner"
)

func TestGridIsExact(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "server: {model: m}\nspace:\n  mem-fraction-static: {min: 0.80, max: 0.93, step: 0.005}\n  schedule-conservativeness: {min: 0.3, max: 1.3, step: 0.1}\nworkload: {file: prompts.jsonl}\n")
	for i, want := range []struct {
		n           int
		first, last float64
		digits      int
	}{{27, 0.8, 0.93, 3}, {11, 0.3, 1.3, 1}} {
		d := s.Space[i]
		if len(d.Values) != want.n || d.Values[0] != want.first || d.Values[want.n-1] != want.last {
			t.Errorf("%s has %d values from %v to %v, want %d from %v to %v", d.Name, len(d.Values), d.Values[0], d.Values[len(d.Values)-1], want.n, want.first, want.last)
		}
		for j, v := range d.Values {
			text := sglang.FormatValue(v)
			if _, frac, _ := strings.Cut(text, "."); len(frac) > want.digits {
				t.Errorf("%s value %d is %s", d.Name, j, text)
			}
			parsed, err := strconv.ParseFloat(text, 64)
			if err != nil || d.Index(parsed) != j || d.Nearest(parsed) != j {
				t.Errorf("%s %s is found at %d and %d, want %d", d.Name, text, d.Index(parsed), d.Nearest(parsed), j)
			}
		}
	}
}

var small = tuner.Space{
	{Name: "hicache-size", Values: []any{0.0, 16.0, 48.0}, Kind: tuner.Numeric},
	{Name: "hicache-write-policy", Values: []any{"write_back", "write_through"}, Kind: tuner.Categorical},
	{Name: "enable-mixed-chunk", Values: []any{false, true}, Kind: tuner.Categorical},
}

func TestAtMapsEqualCells(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		unit []float64
		want sglang.Config
	}{
		{[]float64{0, 0, 0}, sglang.Config{"hicache-size": 0.0, "enable-mixed-chunk": false}},
		{[]float64{0.33, 0.99, 0.5}, sglang.Config{"hicache-size": 0.0, "enable-mixed-chunk": true}},
		{[]float64{0.34, 0.5, 0.49}, sglang.Config{"hicache-size": 16.0, "hicache-write-policy": "write_through", "enable-mixed-chunk": false}},
		{[]float64{0.9999, 0.49, 1}, sglang.Config{"hicache-size": 48.0, "hicache-write-policy": "write_back", "enable-mixed-chunk": true}},
		{[]float64{math.Inf(1), math.NaN(), -3}, sglang.Config{"hicache-size": 48.0, "hicache-write-policy": "write_back", "enable-mixed-chunk": false}},
		{nil, sglang.Config{"hicache-size": 0.0, "enable-mixed-chunk": false}},
	} {
		if diff := cmp.Diff(tt.want, small.At(tt.unit)); diff != "" {
			t.Errorf("At(%v) (-want +got):\n%s", tt.unit, diff)
		}
	}
	seen := map[any]int{}
	for i := range 3000 {
		seen[small[0].At((float64(i)+0.5)/3000)]++
	}
	if diff := cmp.Diff(map[any]int{0.0: 1000, 16.0: 1000, 48.0: 1000}, seen); diff != "" {
		t.Errorf("cells are not equal (-want +got):\n%s", diff)
	}
}

func TestDeadKnobsMakeNoDifference(t *testing.T) {
	t.Parallel()
	off := sglang.Config{"mem-fraction-static": 0.85, "hicache-size": 0.0, "hicache-write-policy": "write_back"}
	for _, tt := range []struct {
		name string
		c    sglang.Config
		same bool
	}{
		{"other dead knob", sglang.Config{"mem-fraction-static": 0.85, "hicache-size": 0.0, "hicache-write-policy": "write_through"}, true},
		{"no hicache at all", sglang.Config{"mem-fraction-static": 0.85}, true},
		{"other fraction", sglang.Config{"mem-fraction-static": 0.86}, false},
		{"hicache on", sglang.Config{"mem-fraction-static": 0.85, "hicache-size": 16.0, "hicache-write-policy": "write_back"}, false},
	} {
		if got := small.Key(off) == small.Key(tt.c); got != tt.same {
			t.Errorf("%s: same = %v, want %v", tt.name, got, tt.same)
		}
	}
	if _, kept := off["hicache-write-policy"]; !kept {
		t.Error("Key changed its argument")
	}
}

func TestAllAndIndex(t *testing.T) {
	t.Parallel()
	if small.Size() != 12 {
		t.Errorf("size %d, want 12", small.Size())
	}
	keys := map[string]bool{}
	for c := range small.All() {
		if keys[small.Key(c)] {
			t.Errorf("%v comes twice", c)
		}
		keys[small.Key(c)] = true
		index, ok := small.Index(c)
		if !ok {
			t.Errorf("%v is not found", c)
			continue
		}
		if diff := cmp.Diff(c, small.Config(index)); diff != "" {
			t.Errorf("index %v (-want +got):\n%s", index, diff)
		}
	}
	if len(keys) != 2+2*2*2 { // off: mixed chunk only; 16 and 48: both knobs
		t.Errorf("%d different configurations, want 10", len(keys))
	}
	if _, ok := small.Index(sglang.Config{"hicache-size": 17.0, "enable-mixed-chunk": true}); ok {
		t.Error("17 GB is in the space")
	}
	if index, ok := small.Index(sglang.Config{"enable-mixed-chunk": true}); !ok || index[0] != 0 {
		t.Errorf("a configuration without hicache-size is at %v, %v", index, ok)
	}
	for range (tuner.Space{{Name: "x"}}).All() {
		t.Error("a space without values has a configuration")
	}
}
