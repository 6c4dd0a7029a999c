package hosts

import (
	"testing"

	"sgtune/internal/hosttest"
)

func TestDirectConforms(t *testing.T) { need(t); hosttest.Conform(t, suite("gpu-host")) }
func TestJumpConforms(t *testing.T)   { need(t); hosttest.Conform(t, suite("gpu-via-jump")) }
