package trial

import (
	"testing"

	"sgtune/benchmark"
)

func rows(inputs ...int) *benchmark.Workload {
	var rows []benchmark.Row
	for i, n := range inputs {
		rows = append(rows, benchmark.Row{Number: i, InputTokens: n, OutputTokens: 300, HashIDs: []int64{1}})
	}
	return benchmark.NewWorkload(rows, 64)
}

func TestFullCanary(t *testing.T) {
	t.Parallel()
	inputs := make([]int, 200)
	for i := range inputs {
		inputs[i] = 10 + i
	}
	all := rows(inputs...)
	if n := canaryClientsAt(all, 40, 1024); n != 40+10 { // two chunks of 1,024 are ten prompts of the p99 length, 207
		t.Errorf("%d clients", n)
	}
	w := all.Longest(canaryQuantile).Doubled(canaryOutput)
	if w.Len() != 2*3 {
		t.Fatalf("%d rows", w.Len())
	}
	seen := map[int]bool{}
	for i, r := range w.All() {
		if r.InputTokens < 207 || r.HashIDs != nil || seen[r.Number] {
			t.Errorf("row %d: %+v", i, r)
		}
		if want := []int{300, canaryOutput}[i%2]; r.OutputTokens != want {
			t.Errorf("row %d asks for %d tokens, want %d", i, r.OutputTokens, want)
		}
		seen[r.Number] = true
	}
	if n := canaryClientsAt(rows(10), 40, -1); n != 40+canaryClients {
		t.Errorf("short prompts: %d clients", n)
	}
}

func TestWorstRows(t *testing.T) {
	t.Parallel()
	if at := worstRows(rows(1, 9, 1, 5, 6, 7, 1), 3); at != 3 {
		t.Errorf("begins at row %d", at)
	}
	if at := worstRows(rows(4, 5), 40); at != 0 {
		t.Errorf("short file: begins at row %d", at)
	}
}

// TestReserve: the measured rows depend on the file and the study, never on the trial.
func TestReserve(t *testing.T) {
	t.Parallel()
	w := rows(make([]int, 90)...)
	w.Reuse = 0.5
	l := Load{Workload: w, Fill: 1, FillHostPoolGB: 48}
	if got := l.reserve(); got != 30 {
		t.Errorf("measured rows begin at %d, want 30", got)
	}
	l.FillHostPoolGB = 0
	if got := l.reserve(); got != 0 {
		t.Errorf("without a fill they begin at %d, want 0", got)
	}
}
