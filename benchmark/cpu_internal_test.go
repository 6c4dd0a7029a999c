package benchmark

import (
	"math"
	"testing"
	"time"
)

// The client's own CPU must show up in its reading: what its share is made of.
func TestCPUMeterCountsOurOwn(t *testing.T) {
	t.Parallel()
	m := NewCPUMeter()
	before := m.Read()
	for m.Read().Used-before.Used < 20*time.Millisecond { // spin until the kernel has booked it
		if time.Since(before.At) > 30*time.Second {
			t.Fatal("30 s of spinning were not booked")
		}
	}
	if after := m.Read(); after.ShareSince(before) <= 0 || after.CoresSince(before) < 1 {
		t.Errorf("share %g of %g cores", after.ShareSince(before), after.CoresSince(before))
	}
}

// A process that had one core for three seconds and four for one had seven core seconds.
func TestCPUShareIsOfTheCoresThereWere(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	from := CPUReading{At: at, Used: time.Second, Given: 5 * time.Second}
	to := CPUReading{At: at.Add(4 * time.Second), Used: 4500 * time.Millisecond, Given: 12 * time.Second}
	if share, cores := to.ShareSince(from), to.CoresSince(from); math.Abs(share-0.5) > 1e-9 || math.Abs(cores-1.75) > 1e-9 {
		t.Errorf("share %g of %g cores, want 0.5 of 1.75", share, cores)
	}
	if from.ShareSince(from) != 0 || from.CoresSince(from) != 0 {
		t.Error("a share of no time")
	}
}
