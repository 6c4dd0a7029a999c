package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"time"
)

// logOverlap is how much of the log is read again after a break: lines of two streams are not always in the order of
// their stamps.
const logOverlap = 2 * time.Second

// epochStamp asks for a log from its beginning.
const epochStamp = "1970-01-01T00:00:00Z"

// containerLog copies the log of a container, line by line and each line once, however often "logs" has to be started
// again (a daemon that is restarted ends it). The runtime stamps each line; by stamp and text a line is known again.
type containerLog struct {
	start func(ctx context.Context, follow bool, since string) *exec.Cmd
	out   io.Writer

	newest  time.Time
	recent  []stampedLine  // those written last, for at least logOverlap, oldest first
	pending map[string]int // what of them the present reading brings again
	trouble string         // the runtime's own last words
}

type stampedLine struct {
	at  time.Time
	key string
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
	since := epochStamp
	if !g.newest.IsZero() {
		since = g.newest.Add(-logOverlap).UTC().Format(time.RFC3339Nano)
	}
	g.pending = map[string]int{}
	for _, line := range g.recent {
		g.pending[line.key]++
	}
	cmd := g.start(ctx, follow, since)
	// One pipe for both streams: so the lines stay in the order in which the runtime tells them.
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	_ = w.Close()
	if err == nil {
		err = g.copy(ctx, bufio.NewReaderSize(r, 64<<10), !follow)
		err = errors.Join(err, cmd.Wait())
	}
	return errors.Join(err, r.Close())
}

// copy reads stamped lines. A rest without a line break is only believed at the last reading: before, the line may
// go on.
func (g *containerLog) copy(ctx context.Context, in *bufio.Reader, last bool) error {
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 && (err == nil || last) {
			if failed := g.take(ctx, line); failed != nil {
				return failed
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take writes one line, unless it is one that was written before.
func (g *containerLog) take(ctx context.Context, line []byte) error {
	stamp, text, ok := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	if !ok || err != nil {
		g.trouble = string(bytes.TrimSpace(line))
		return nil
	}
	text = withoutStamps(text)
	key := string(stamp) + " " + string(text)
	if g.pending[key] > 0 {
		g.pending[key]--
		return nil
	}
	if err := g.write(ctx, text); err != nil {
		return err
	}
	g.recent = append(g.recent, stampedLine{at, key})
	if at.After(g.newest) {
		g.newest = at
	}
	old := 0
	for old < len(g.recent) && g.recent[old].at.Before(g.newest.Add(-logOverlap)) {
		old++
	}
	g.recent = g.recent[old:]
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

// longPiece is the least length at which runtimes cut a line into pieces (Podman 8 KiB, Docker 16 KiB). Docker stamps
// each piece, in the middle of the line.
const longPiece = 8 << 10

var innerStamp = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{9}(Z|[+-][0-9]{2}:[0-9]{2}) `)

func withoutStamps(text []byte) []byte {
	if len(text) < longPiece {
		return text
	}
	return innerStamp.ReplaceAll(text, nil)
}
