package main

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
	"sgtune/host"
)

func TestEnergyReader(t *testing.T) {
	t.Parallel()
	broken := errors.New("no driver")
	counter := []host.GPUEnergy{{UUID: "a", Joules: 12, Watts: 75}}
	power := []host.GPUEnergy{{UUID: "a", Joules: -1, Watts: 80}}
	silent := []host.GPUEnergy{{UUID: "a", Joules: -1, Watts: -1}}
	for _, c := range []struct {
		name          string
		first, second []host.GPUEnergy
		want          []benchmark.PowerReading
		calls         [2]int // of two readings
	}{
		{"counter", counter, power, []benchmark.PowerReading{{GPU: "a", Joules: 12, Watts: 75}}, [2]int{2, 0}},
		{"power only", nil, power, []benchmark.PowerReading{{GPU: "a", Joules: -1, Watts: 80}}, [2]int{1, 2}},
		{"a silent GPU", silent, power, []benchmark.PowerReading{{GPU: "a", Joules: -1, Watts: 80}}, [2]int{1, 2}},
		{"none", nil, nil, nil, [2]int{2, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var calls [2]int
			way := func(i int, gpus []host.GPUEnergy) readEnergy {
				return func(context.Context) ([]host.GPUEnergy, error) {
					calls[i]++
					if gpus == nil {
						return nil, broken
					}
					return gpus, nil
				}
			}
			read := energyReader(way(0, c.first), way(1, c.second))
			for range 2 {
				got, err := read(t.Context())
				if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != (c.want == nil) {
					t.Errorf("%v (-want +got)\n%s", err, diff)
				}
			}
			if calls != c.calls {
				t.Errorf("asked %v times, want %v", calls, c.calls)
			}
		})
	}
}
