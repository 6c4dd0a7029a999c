package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxSuggestLine is the longest request, in bytes.
const maxSuggestLine = 64 << 20

var errLineTooLong = fmt.Errorf("the line is longer than %d MiB; send one request a line", maxSuggestLine>>20)

// suggestLines reads lines when asked for one. Reading standard input cannot be interrupted, so it
// has a goroutine of its own: close waits for it, unless Ctrl-C left it in a read, which ends with
// the program.
type suggestLines struct {
	ask     chan struct{}
	got     chan suggestLine
	done    chan struct{}
	reading bool
}

type suggestLine struct {
	text []byte // until the next one is asked for
	err  error
}

func newSuggestLines(in io.Reader) *suggestLines {
	l := &suggestLines{ask: make(chan struct{}), got: make(chan suggestLine, 1), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		from := bufio.NewReaderSize(in, 64<<10)
		var buf []byte
		for range l.ask {
			var err error
			buf, err = readSuggestLine(from, buf[:0])
			l.got <- suggestLine{buf, err}
		}
	}()
	return l
}

// next is the next line without its end. The last one may lack that; after it comes io.EOF. Of a line
// that is too long its beginning is left.
func (l *suggestLines) next(ctx context.Context) ([]byte, error) {
	select {
	case l.ask <- struct{}{}:
		l.reading = true
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case line := <-l.got:
		l.reading = false
		return line.text, line.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *suggestLines) close() {
	close(l.ask)
	if !l.reading {
		<-l.done
	}
}

func readSuggestLine(from *bufio.Reader, buf []byte) ([]byte, error) {
	tooLong := false
	for {
		piece, err := from.ReadSlice('\n')
		if tooLong = tooLong || len(buf)+len(piece) > maxSuggestLine; !tooLong {
			buf = append(buf, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong && (err == nil || errors.Is(err, io.EOF)):
			return buf, errLineTooLong
		case errors.Is(err, io.EOF) && len(buf) > 0:
			err = nil
		}
		return bytes.TrimRight(buf, "\r\n"), err
	}
}
