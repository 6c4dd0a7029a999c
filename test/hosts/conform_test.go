package hosts

import (
	"testing"

	"sgtune/internal/hosttest"
)

// Both run side by side, after the tests that cut connections of everybody, and the studies, which need the machine: their own
// cuts have servers of their own.

func TestDirectConforms(t *testing.T) { t.Parallel(); need(t); hosttest.Conform(t, suite("gpu-host")) }

func TestJumpConforms(t *testing.T) {
	t.Parallel()
	need(t)
	hosttest.Conform(t, suite("gpu-via-jump"))
}
