package hosttest

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
)

// failures are the names of the tests that failed, of those that Watch was told of.
var failures struct {
	sync.Mutex
	names []string
}

// Watch has the name of a test that fails told once more at the end of the package's output: the slow tiers write so much
// that a log of them is likely to be cut.
func Watch(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			failures.Lock()
			defer failures.Unlock()
			failures.names = append(failures.names, t.Name())
		}
	})
}

// tellFailures prints those names, if there are any.
func tellFailures(w io.Writer) {
	failures.Lock()
	defer failures.Unlock()
	slices.Sort(failures.names)
	for _, name := range slices.Compact(failures.names) {
		fmt.Fprintf(w, "failed: %s\n", name)
	}
}
