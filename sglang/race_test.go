//go:build race

package sglang_test

// raceDetector: it makes sync.Pool drop things, so allocations of ParseLine cannot be counted.
const raceDetector = true
