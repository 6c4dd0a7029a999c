package chart

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"sgtune/sglang"
)

// How much of a log is read: all of a short one, evenly spread parts of a long one.
const (
	logWhole = 8 << 20
	logParts = 128
)

// Log is an open server log.
type Log interface {
	io.ReaderAt
	Size() int64
}

// stampHead is how much of a log is searched for its first time.
const stampHead = 64 << 10

// firstStamp is the first time in a log, which a server prints as it is launched; zero without one.
func firstStamp(log Log) time.Time {
	lines := bufio.NewScanner(io.NewSectionReader(log, 0, min(log.Size(), stampHead)))
	lines.Buffer(nil, stampHead+1)
	for lines.Scan() {
		if line := lines.Text(); len(line) > len(time.DateTime) && line[0] == '[' {
			if at, err := time.Parse(time.DateTime, line[1:len(time.DateTime)+1]); err == nil {
				return at
			}
		}
	}
	return time.Time{} // also where it cannot be read, which readLog says
}

// logPoint is what one batch line says. What it does not say is NaN.
type logPoint struct {
	at                             time.Time // server's clock, no zone
	tokens, running, queued, usage float64
}

// readLog reads the batch lines of a log; part says that it was too long to be read whole.
func readLog(log Log) (points []logPoint, part bool, err error) {
	size := log.Size()
	if size <= logWhole {
		points, err = batchLines(io.NewSectionReader(log, 0, size), false)
		return points, false, err
	}
	width := int64(logWhole / logParts)
	for i := range int64(logParts) {
		from := (size - width) / (logParts - 1) * i
		some, err := batchLines(io.NewSectionReader(log, from, width), from > 0)
		if err != nil {
			return nil, true, err
		}
		points = append(points, some...)
	}
	slices.SortStableFunc(points, func(a, b logPoint) int { return a.at.Compare(b.at) })
	return points, true, nil
}

// batchLines reads the batch lines of a part; torn says that its first line is the end of one.
func batchLines(r io.Reader, torn bool) ([]logPoint, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	var out []logPoint
	for {
		line, err := lines.ReadSlice('\n')
		whole := err == nil
		for errors.Is(err, bufio.ErrBufferFull) { // no batch line is so long
			_, err = lines.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the server's log: %w", err)
		}
		if p, ok := batchLine(line); ok && !torn && whole {
			out = append(out, p)
		}
		torn = false
		if err != nil {
			return out, nil
		}
	}
}

// batchLine reads one line. Of several ranks only the first speaks for the server.
func batchLine(line []byte) (logPoint, bool) {
	if !bytes.Contains(line, []byte(" batch")) {
		return logPoint{}, false
	}
	ev, ok := sglang.ParseLine(string(line))
	if !ok || ev.At.IsZero() || ev.Kind != "decode_batch" && ev.Kind != "prefill_batch" || ev.Rank > 0 || ev.DP > 0 || ev.PP > 0 {
		return logPoint{}, false
	}
	value := func(name string) float64 {
		if v, said := ev.Values[name]; said {
			return v
		}
		return nan
	}
	p := logPoint{at: ev.At, running: value("running"), queued: value("queue"), usage: value("token_usage"), tokens: value("gen_tok_s")}
	if ev.Kind == "prefill_batch" {
		p.running = nan // of the decode batch before this one
	}
	return p, true
}

// guardLine is what charts read of a guard's sample.
type guardLine struct {
	At     time.Time `json:"at"`
	Memory struct {
		Available int64 `json:"available"`
	} `json:"memory"`
	GPUs []struct {
		Used       int64
		PowerWatts *float64
	} `json:"gpus"`
}

// guard is what the guard on the host sampled: its clock may be another machine's, so times count from its first look.
func (l *Life) guard(samples []byte) {
	var first time.Time
	var memT, mem, gpuT, gpu, powerT, power []float64
	for line := range bytes.Lines(samples) {
		var s guardLine
		if json.Unmarshal(line, &s) != nil || s.At.IsZero() {
			continue // cut off by a crash
		}
		if first.IsZero() {
			first = s.At
		}
		t := s.At.Sub(first).Seconds()
		if s.Memory.Available >= 0 {
			memT, mem = append(memT, t), append(mem, float64(s.Memory.Available)/1e9)
		}
		fullest, watts, metered := int64(0), 0.0, len(s.GPUs) > 0
		for _, g := range s.GPUs {
			fullest = max(fullest, g.Used)
			if g.PowerWatts == nil {
				metered = false
			} else {
				watts += *g.PowerWatts
			}
		}
		if len(s.GPUs) > 0 {
			gpuT, gpu = append(gpuT, t), append(gpu, float64(fullest)/(1<<30))
		}
		if metered {
			powerT, power = append(powerT, t), append(power, math.Round(watts))
		}
	}
	l.add("GPU memory", panelGPU, gpuT, gpu)
	l.add("host memory", panelRAM, memT, mem)
	l.add("power", panelPower, powerT, power)
	if len(gpuT) == 0 && len(memT) == 0 {
		l.Notes = append(l.Notes, "No guard sampled the machine, so no GPU memory, host memory or power.")
	}
}
