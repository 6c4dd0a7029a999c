package benchmark

import (
	"testing"
	"time"
)

// The client's own CPU must show up in its reading: what CPUShare is made of.
func TestReadCPUCountsOurOwn(t *testing.T) {
	t.Parallel()
	before := readCPU()
	for readCPU().used-before.used < 20*time.Millisecond { // spin until the kernel has booked it
		if time.Since(before.at) > 30*time.Second {
			t.Fatal("30 s of spinning were not booked")
		}
	}
}
