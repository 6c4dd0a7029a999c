package sglang

import "bytes"

// tempoLines is how many decode lines one stretch has: some minutes of a busy server.
const tempoLines = 16

// Tempo is the course of the decode throughput: the best stretch of decode lines against the last one.
// Figures are means over a stretch; all are 0 before the first stretch is full.
type Tempo struct {
	BestTokS, BestRunning float64 // tok/s and running requests of the best stretch
	LateTokS, LateRunning float64 // and of the last one

	ring [tempoLines][2]float64
	n    int
	sum  [2]float64
}

// add takes one decode line.
func (t *Tempo) add(tokS, running float64) {
	at := &t.ring[t.n%tempoLines]
	t.sum[0] += tokS - at[0]
	t.sum[1] += running - at[1]
	*at = [2]float64{tokS, running}
	if t.n++; t.n < tempoLines {
		return
	}
	t.LateTokS, t.LateRunning = t.sum[0]/tempoLines, t.sum[1]/tempoLines
	if t.LateTokS > t.BestTokS {
		t.BestTokS, t.BestRunning = t.LateTokS, t.LateRunning
	}
}

// isStackFrame reports whether an indented line is a frame of py-spy's dump: "f (dir/x.py:12)".
func isStackFrame(msg []byte) bool {
	return bytes.HasSuffix(bytes.TrimRight(msg, " "), []byte(")")) && bytes.Contains(msg, []byte(".py:")) && bytes.Contains(msg, []byte(" ("))
}
