package benchmark

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxRowBytes bounds one row of a workload file: a million tokens of text is about 4 MB.
const maxRowBytes = 64 << 20

var errTooLong = errors.New("row too long")

// rowText is the text of one row, valid until the next one is read.
type rowText struct {
	text   []byte
	offset int64 // where it can be read again from
	end    int64 // behind it
	line   int   // from 1
}

// rowReader reads the texts of rows one after the other; the error is io.EOF after the last.
type rowReader interface {
	next() (rowText, error)
}

// lineRows reads one row a line. Blank lines are passed over, a byte order mark at the start too.
type lineRows struct {
	r      *bufio.Reader
	offset int64
	line   int
	long   []byte // a line longer than the reader's buffer
}

func newLineRows(r io.Reader, offset int64, line, buffer int) *lineRows {
	return &lineRows{r: bufio.NewReaderSize(r, buffer), offset: offset, line: line}
}

func (l *lineRows) next() (rowText, error) {
	for {
		text, err := l.read()
		start := l.offset
		l.offset += int64(len(text))
		if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
			return rowText{line: l.line + 1}, err
		}
		l.line++
		if start == 0 {
			text = bytes.TrimPrefix(text, byteOrderMark)
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return rowText{text: text, offset: start, end: l.offset, line: l.line}, nil
		}
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// read returns the next line with its end.
func (l *lineRows) read() ([]byte, error) {
	text, err := l.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}
	l.long = append(l.long[:0], text...)
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = l.r.ReadSlice('\n')
		if l.long = append(l.long, text...); len(l.long) > maxRowBytes {
			return nil, errTooLong
		}
	}
	return l.long, err
}
