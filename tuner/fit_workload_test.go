package tuner_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/tuner"
)

// A workload that repeats nothing fixes the hierarchical cache to off, and says why with its numbers.
func TestFitWorkload(t *testing.T) {
	t.Parallel()
	all := []any{float64(0), float64(16), float64(48)}
	for _, tt := range []struct {
		name, server string
		reuse        float64
		want         []any
	}{
		{"repeats nothing", "", 0.004, []any{float64(0)}},
		{"baseline with a pool", "  baseline: {hicache-size: 32}\n", 0.004, []any{float64(0)}},
		{"repeats enough", "", 0.02, all},
		{"switched on in every launch", "  flags: {enable-hierarchical-cache: true}\n", 0.004, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := fitStudy(t, tt.server, "  hicache-size: [0, 16, 48]\n  page-size: [1, 64]\n")
			s.FitWorkload(tt.reuse)
			s.FitWorkload(tt.reuse) // nothing more the second time
			d, _ := s.Space.Dim("hicache-size")
			if diff := cmp.Diff(tt.want, d.Values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			fixed := len(tt.want) == 1
			if fixed != (len(s.Excluded) == 1) {
				t.Fatalf("left out: %+v", s.Excluded)
			}
			if !fixed {
				return
			}
			e := s.Excluded[0]
			for _, part := range []string{"fixed to 0", "16, 48", "0.4%", "under 2%"} {
				if e.Rule != tuner.RuleWorkload || !strings.Contains(e.Text, part) {
					t.Errorf("no %q in %+v", part, e)
				}
			}
		})
	}
}

// Where all values but 0 are left out the search goes on with the other knobs, none of them dead.
func TestFitWorkloadAddsTheZero(t *testing.T) {
	t.Parallel()
	s := fitStudy(t, "", "  hicache-size: [16, 48]\n  page-size: [1, 64]\n")
	s.FitWorkload(0)
	if n := s.Space.Size(); n != 2 {
		t.Errorf("%d configurations are left, want 2", n)
	}
}
