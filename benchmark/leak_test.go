package benchmark_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"sgtune/benchmark"
)

// TestNothingIsLeftOfCutStreams sends many requests of which one in twenty is cut half way, twice over: no
// goroutine, no connection and no memory is left. It does not run beside other tests, which have their own.
func TestNothingIsLeftOfCutStreams(t *testing.T) {
	requests := 10_000
	if testing.Short() {
		requests = 1_000
	}
	f := &fakeServer{fault: func(n int) string {
		if n%20 == 19 {
			return "cut_stream"
		}
		return ""
	}, quiet: true}
	target := f.start(t)
	feed := benchmark.NewFeed(lengths(100, 16, 8), 0, 100, "", testPalette())
	run := func() {
		r, err := benchmark.Run(t.Context(), target, feed, benchmark.Options{Concurrency: 32, Requests: requests}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := requests / 20; r.Requests.Failed["cut_stream"] != want || r.Requests.OK != requests-want {
			t.Fatalf("%+v, %d cut streams wanted: %v", r.Requests, want, r.Errors)
		}
	}
	run()
	goroutines, files, heap := left()
	run()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		g, f, h := left()
		if g <= goroutines+5 && f <= files+5 && h <= heap+heap/4+2<<20 {
			return
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("after one run %d goroutines, %d open files, %d bytes; after two %d, %d and %d", goroutines, files, heap, g, f, h)
		}
	}
}

func left() (goroutines, files int, heap uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd") // read in full or not at all
	return runtime.NumGoroutine(), len(open), m.HeapAlloc
}
