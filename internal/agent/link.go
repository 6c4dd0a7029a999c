package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"sgtune/internal/replayjob"
)

const (
	longestLine = 256 << 20 // a report with a long level's windows and seconds is some MB
	mostNoise   = 4 << 10   // of what stood before the hello, kept for the error
	unsaid      = 64        // lines that may wait for a link that takes none
)

// link is the connection to an agent: one goroutine reads, one writes, neither ever holds up the session.
type link struct {
	conn   Conn
	events chan replayjob.Event // closed when there are no more
	words  chan []byte
	quit   chan struct{} // nobody takes events any more
	ends   sync.WaitGroup

	noise strings.Builder // before the hello; only read touches it, lost after events was closed
	err   error           // why reading ended, likewise
}

func open(c Conn) *link {
	l := &link{conn: c, events: make(chan replayjob.Event, 1), words: make(chan []byte, unsaid), quit: make(chan struct{})}
	l.ends.Go(l.read)
	l.ends.Go(l.write)
	return l
}

// close ends the connection and both goroutines. To the agent it means that its caller is gone.
func (l *link) close() {
	close(l.quit)
	close(l.words)
	_ = l.conn.In.Close()  // what there was to say was said or is not wanted
	_ = l.conn.Out.Close() // all that matters was heard
	l.ends.Wait()
}

// say queues a line. A link that has taken none of the last unsaid ones is as good as dead; the silence
// that follows is noticed.
func (l *link) say(c replayjob.Control) {
	line, err := json.Marshal(c)
	if err != nil {
		return // texts and whole numbers always have a JSON form
	}
	select {
	case l.words <- append(line, '\n'):
	default:
	}
}

func (l *link) write() {
	broken := false
	for line := range l.words {
		if broken {
			continue
		}
		_, err := l.conn.In.Write(line)
		broken = err != nil // the reading side hears the end too, and knows more about it
	}
}

// read turns lines into events, from the hello on.
func (l *link) read() {
	defer close(l.events)
	lines := bufio.NewScanner(l.conn.Out)
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	greeted := false
	for lines.Scan() {
		var e replayjob.Event
		err := json.Unmarshal(lines.Bytes(), &e)
		switch {
		case greeted && err != nil:
			l.err = fmt.Errorf("it sent a line that cannot be read: %w: %.200q", err, lines.Bytes())
			return
		case !greeted && (err != nil || e.Hello == nil || e.Hello.Program != replayjob.Program):
			l.keepNoise(lines.Bytes())
			continue
		}
		greeted = true
		select {
		case l.events <- e:
		case <-l.quit:
			return
		}
	}
	l.err = lines.Err()
	if l.err == nil {
		l.err = io.EOF
	}
}

// keepNoise remembers what a shell, or a program that is no agent, printed.
func (l *link) keepNoise(line []byte) {
	if line = bytes.TrimSpace(line); len(line) > 0 && l.noise.Len() < mostNoise {
		l.noise.Write(line[:min(len(line), 400)])
		l.noise.WriteByte('\n')
	}
}

// lost says how the connection ended, after events was closed.
func (l *link) lost() error {
	text := strings.TrimSpace(l.noise.String())
	switch {
	case errors.Is(l.err, io.EOF) && text != "":
		return fmt.Errorf("%w: its output ended; it began with %q", ErrLost, text)
	case errors.Is(l.err, io.EOF):
		return fmt.Errorf("%w: its output ended before the result", ErrLost)
	}
	return fmt.Errorf("%w: %w", ErrLost, l.err)
}
