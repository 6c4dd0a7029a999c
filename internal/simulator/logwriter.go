package simulator

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// logWriter prints SGLang's log lines with simulated time: process start plus simulated seconds. Lines are
// collected and written by flush, at most one write for each turn of the pace loop.
type logWriter struct {
	d    *dialect
	mu   sync.Mutex
	w    io.Writer
	base time.Time
	buf  []byte

	second int64  // cached: the second that stamp spells
	stamp  []byte // "[2006-01-02 15:04:05"
}

func newLogWriter(d *dialect, w io.Writer, base time.Time) *logWriter {
	return &logWriter{d: d, w: w, base: base, second: -1}
}

// line prints one line; rank below 0 is the main process.
func (l *logWriter) line(at float64, rank int, format string, a ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prefix(at, rank)
	l.buf = fmt.Appendf(l.buf, format, a...)
	l.buf = append(l.buf, '\n')
}

// raw prints text as it is: progress bars, tracebacks.
func (l *logWriter) raw(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, text...)
}

func (l *logWriter) prefix(at float64, rank int) {
	if s := int64(at); s != l.second {
		l.second = s
		l.stamp = l.base.Add(time.Duration(s)*time.Second).AppendFormat(l.stamp[:0], "[2006-01-02 15:04:05")
	}
	l.buf = append(l.buf, l.stamp...)
	if rank >= 0 {
		l.buf = append(l.buf, " TP"...)
		l.buf = strconv.AppendInt(l.buf, int64(rank), 10)
	}
	l.buf = append(l.buf, "] "...)
}

// flush writes what was collected. A log that cannot be written is lost, as a real server's would be.
func (l *logWriter) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) > 0 {
		_, _ = l.w.Write(l.buf)
		l.buf = l.buf[:0]
	}
}

// PrefillDone, DecodeDone and Retracted make the log an Observer of the engine.
func (l *logWriter) PrefillDone(b PrefillBatch) {
	l.batch(b.At, func(t []byte) []byte { return l.d.prefill(t, b) })
}

// DecodeDone prints a decode batch line.
func (l *logWriter) DecodeDone(b DecodeBatch) {
	l.batch(b.At, func(t []byte) []byte { return l.d.decode(t, b) })
}

// Retracted prints a retraction line.
func (l *logWriter) Retracted(r Retraction) {
	text := "KV cache pool is full. Retract requests."
	if l.d.release == r046 {
		text = "Decode out of memory happened."
	}
	gained := ""
	if l.d.release >= r0510 {
		gained = fmt.Sprintf(", #new_tokens_gained: %d", r.Gained)
	}
	l.line(r.At, 0, "%s #retracted_reqs: %d%s, #new_token_ratio: %.4f -> %.4f", text, r.Requests, gained, r.RatioFrom, r.RatioTo)
}

// batch prints a batch line; 0.4.9's ends with a time stamp, 0.5.5's with a comma.
func (l *logWriter) batch(at float64, add func([]byte) []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prefix(at, 0)
	l.buf = add(l.buf)
	switch l.d.release {
	case r049:
		stamp := l.base.Add(time.Duration(at * float64(time.Second)))
		l.buf = stamp.AppendFormat(append(l.buf, ", timestamp: "...), "2006-01-02T15:04:05.000000")
	case r055:
		l.buf = append(l.buf, ", "...)
	default:
	}
	l.buf = append(l.buf, '\n')
}

// stop is what follows "Prefill batch" and "Decode batch".
func (d *dialect) stop() string {
	if d.release <= r049 {
		return ". "
	}
	return ", "
}

func (d *dialect) prefill(t []byte, b PrefillBatch) []byte {
	t = append(append(t, "Prefill batch"...), d.stop()...)
	t = field(t, "#new-seq: ", b.Seqs)
	t = field(t, ", #new-token: ", b.NewTokens)
	t = field(t, ", #cached-token: ", b.CachedTokens)
	t = share(t, ", token usage: ", b.Usage)
	t = field(t, ", #running-req: ", max(b.Running, 0))
	t = field(t, ", #queue-req: ", b.Queued)
	if d.release >= r0523 {
		t = field(t, ", #pending-token: ", b.PendingTokens)
	}
	if d.release >= r0510 {
		t = share(t, ", cuda graph: False, input throughput (token/s): ", b.TokS)
	}
	return t
}

func (d *dialect) decode(t []byte, b DecodeBatch) []byte {
	t = append(append(t, "Decode batch"...), d.stop()...)
	t = field(t, "#running-req: ", b.Running)
	t = field(t, ", #token: ", b.Used)
	t = share(t, ", token usage: ", b.Usage)
	t = append(t, ", cuda graph: "...)
	t = append(t, pyBool(b.Graph)...)
	t = share(t, ", gen throughput (token/s): ", b.TokS)
	return field(t, ", #queue-req: ", b.Queued)
}

func field(t []byte, name string, v int) []byte {
	return strconv.AppendInt(append(t, name...), int64(v), 10)
}

func share(t []byte, name string, v float64) []byte {
	return strconv.AppendFloat(append(t, name...), v, 'f', 2, 64)
}
