package slurm

import (
	"testing"

	"sgtune/internal/hosttest"
)

func TestConforms(t *testing.T) { need(t); hosttest.Conform(t, suite()) }
