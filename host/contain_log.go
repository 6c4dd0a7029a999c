package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"time"
)

const (
	// logOverlap is how much of the log is read again after a break: two streams are not noted in the order of their stamps.
	logOverlap = 2 * time.Second
	// mostRemembered is how many pieces of lines are known again after a break.
	mostRemembered = 100_000
	// logBatch is how long lines of the two streams wait for each other, to be put in order.
	logBatch = 50 * time.Millisecond
	// epochStamp asks for a log from its beginning.
	epochStamp = "1970-01-01T00:00:00Z"
)

// containerLog copies the log of a container, each line once, however often "logs" has to be started again (a daemon
// that is restarted ends it). The runtime stamps each piece of a line; by stamp and text a piece is known again.
type containerLog struct {
	start func(ctx context.Context, follow bool, since string) *exec.Cmd
	out   io.Writer

	seed    maphash.Seed
	newest  time.Time
	open    time.Time      // stamp of the oldest line without an end at the last break, zero for none
	recent  []logPiece     // those written last, oldest first
	pending map[uint64]int // what of them the present reading brings again
	trouble string         // the runtime's own last words
}

// logPiece is a piece of a line as it is remembered.
type logPiece struct {
	at  time.Time
	key uint64
}

// logLine is a line as the runtime told it, put together from its pieces.
type logLine struct {
	at     time.Time
	text   []byte
	pieces []logPiece
}

// follow copies until ctx ends; a reading that ends is begun anew.
func (g *containerLog) follow(ctx context.Context) {
	for wait := 200 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 2*time.Second) {
		before := g.newest
		_ = g.read(ctx, true) // what is missing is read next time
		if g.newest.After(before) {
			wait = 100 * time.Millisecond
		}
		pause(ctx, wait)
	}
}

// read copies once what is new; with follow it stays until the container ends.
func (g *containerLog) read(ctx context.Context, follow bool) error {
	cmd := g.start(ctx, follow, g.since())
	out, err1 := cmd.StdoutPipe()
	words, err2 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return err
	}
	lines := make(chan logLine, 1000)
	var reading sync.WaitGroup
	var open [2]time.Time
	for i, stream := range []io.Reader{out, words} {
		reading.Go(func() { open[i] = g.scan(stream, !follow, lines) })
	}
	go func() { // ends with the two
		reading.Wait()
		close(lines)
	}()
	err := g.merge(ctx, lines)
	g.open = time.Time{}
	for _, at := range open { // both have ended: lines is closed
		if !at.IsZero() && (g.open.IsZero() || at.Before(g.open)) {
			g.open = at
		}
	}
	return errors.Join(err, cmd.Wait())
}

// since is from where the log is read, and sets what of that was written before.
func (g *containerLog) since() string {
	if g.newest.IsZero() {
		g.seed, g.pending = maphash.MakeSeed(), nil
		return epochStamp
	}
	from := g.newest.Add(-logOverlap)
	if !g.open.IsZero() && g.open.Before(from) {
		from = g.open
	}
	if len(g.recent) >= mostRemembered*8/10 && from.Before(g.recent[0].at) {
		from = g.recent[0].at
	}
	g.pending = map[uint64]int{}
	for _, p := range g.recent {
		if !p.at.Before(from) {
			g.pending[p.key]++
		}
	}
	return from.UTC().Format(time.RFC3339Nano)
}

// scan reads the lines of one stream. A rest without a line break is only believed at the last reading: before, the
// line may go on, and its stamp is returned.
func (g *containerLog) scan(stream io.Reader, last bool, to chan<- logLine) (open time.Time) {
	in := bufio.NewReaderSize(stream, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			if l := g.parse(line); err == nil || last {
				to <- l
			} else {
				open = l.at
			}
		}
		if err != nil {
			return open
		}
	}
}

// innerStamp is the stamp of a later piece: runtimes note a line in pieces when it is long or was written in pieces.
var innerStamp = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{9}(Z|[+-][0-9]{2}:[0-9]{2}) `)

// parse takes a line apart; one that does not begin with a stamp is the runtime's own, and has no time.
func (g *containerLog) parse(line []byte) logLine {
	stamp, text, ok := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if !ok || err != nil {
		return logLine{text: line}
	}
	l := logLine{at: at}
	for {
		rest, next := text, []byte(nil)
		cut := innerStamp.FindAllIndex(text, 2)
		if len(cut) > 0 && cut[0][0] == 0 { // the program's own
			cut = cut[1:]
		}
		if len(cut) > 0 {
			rest, next = text[:cut[0][0]], text[cut[0][0]:]
		}
		l.text = append(l.text, rest...)
		var h maphash.Hash
		h.SetSeed(g.seed)
		_, _ = h.Write(stamp)
		_, _ = h.Write(rest)
		l.pieces = append(l.pieces, logPiece{at: at, key: h.Sum64()})
		if next == nil {
			return l
		}
		stamp, text, _ = bytes.Cut(next, []byte(" "))
		if later, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil {
			at = later
		}
	}
}

// merge writes lines in the order of their stamps, as far as they come together. It always reads to the end.
func (g *containerLog) merge(ctx context.Context, lines <-chan logLine) error {
	var failed error
	for more := true; more; {
		first, ok := <-lines
		if !ok {
			return failed
		}
		batch := []logLine{first}
		limit := time.NewTimer(logBatch)
		for full := false; more && !full; {
			select {
			case l, ok := <-lines:
				if more = ok; ok {
					batch = append(batch, l)
				}
				full = len(batch) >= 10*cap(lines)
			case <-limit.C:
				full = true
			}
		}
		limit.Stop()
		slices.SortStableFunc(batch, func(a, b logLine) int { return a.at.Compare(b.at) })
		for _, l := range batch {
			if failed == nil {
				failed = g.take(ctx, l)
			}
		}
	}
	return failed
}

// take writes one line, unless it is one that was written before.
func (g *containerLog) take(ctx context.Context, l logLine) error {
	if l.at.IsZero() {
		g.trouble = string(bytes.TrimSpace(l.text))
		return nil
	}
	again := 0
	for _, p := range l.pieces {
		if g.pending[p.key] > 0 {
			g.pending[p.key]--
			again++
		}
	}
	if again == len(l.pieces) {
		return nil
	}
	if err := g.write(ctx, l.text); err != nil {
		return err
	}
	g.recent = append(g.recent, l.pieces...)
	if old := len(g.recent) - mostRemembered; old > 0 {
		g.recent = slices.Clone(g.recent[old+mostRemembered/10:])
	}
	if l.at.After(g.newest) {
		g.newest = l.at
	}
	return nil
}

// write does not give up on a full disk: the runtime keeps the lines meanwhile.
func (g *containerLog) write(ctx context.Context, text []byte) error {
	for {
		n, err := g.out.Write(text)
		if text = text[n:]; len(text) == 0 {
			return nil
		}
		if !pause(ctx, time.Second) {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}
