package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/tuner"
)

// The machine of a study comes back as it was stored; none is none.
func TestMachineIsKept(t *testing.T) {
	t.Parallel()
	db := open(t)
	for _, want := range []*tuner.Machine{nil, {
		Host: "ssh gpu-box", Kernel: "6.1.0-31-amd64", Driver: "550.54.15", MemTotal: 449e9,
		GPUs: []tuner.GPUOfMachine{{Index: 0, Name: "H200", UUID: "GPU-1", Total: 141 << 30}},
	}} {
		if err := db.SaveStudy(t.Context(), &tuner.Record{Name: "night", State: tuner.StudyRunning, Machine: want}); err != nil {
			t.Fatal(err)
		}
		r, err := db.Study(t.Context(), "night")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Machine); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
