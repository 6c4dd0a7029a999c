package trial

import (
	"testing"

	"sgtune/host"
)

// TestHeld: one sentence for one holder, however many GPUs, and another for each other one.
func TestHeld(t *testing.T) {
	t.Parallel()
	const g = 1 << 30
	gpu := func(i int, used int64, pids ...int) host.GPU {
		out := host.GPU{Index: i, Used: used}
		for _, pid := range pids {
			out.Processes = append(out.Processes, host.GPUProcess{PID: pid, Name: "sglang::schedul"})
		}
		return out
	}
	p := premises{before: []int64{g, g, g, g}}
	for _, c := range []struct {
		name string
		gpus []host.GPU
		want string
	}{
		{"clean", []host.GPU{gpu(0, g), gpu(1, g+host.MemorySlack)}, ""},
		{"one", []host.GPU{gpu(0, g), gpu(1, 5*g, 77)}, "GPU 1 still holds 5.00 GiB (1.00 GiB before the launch), held by pid 77 sglang::schedul"},
		{"outside", []host.GPU{gpu(0, 5*g), gpu(1, 6*g), gpu(2, g)}, "GPUs 0 1 still hold up to 6.00 GiB (1.00 GiB before the launch), no process is listed: the holder is outside this container or VM"},
		{"two holders", []host.GPU{gpu(0, 5*g, 77), gpu(1, 6*g)}, "GPU 0 still holds 5.00 GiB (1.00 GiB before the launch), held by pid 77 sglang::schedul; GPU 1 still holds 6.00 GiB (1.00 GiB before the launch), no process is listed: the holder is outside this container or VM"},
	} {
		if got := p.held(host.Usage{GPUs: c.gpus}); got != c.want {
			t.Errorf("%s: %q\nwant %q", c.name, got, c.want)
		}
	}
}
