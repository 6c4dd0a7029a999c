//go:build !race

package sglang_test

const raceDetector = false
