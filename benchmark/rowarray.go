package benchmark

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// arrayRows reads the elements of a JSON array, without holding more than one of them. It only looks for
// where elements begin and end; whether they are JSON is for the format to say.
type arrayRows struct {
	r      *bufio.Reader
	offset int64
	line   int
	text   []byte
}

func newArrayRows(r io.Reader, offset int64, line, buffer int) *arrayRows {
	return &arrayRows{r: bufio.NewReaderSize(r, buffer), offset: offset, line: line}
}

// enter goes to the first element: into the array the text is, or into the array under a key of the
// object it is. ok is false when it is neither.
func (a *arrayRows) enter(key string) (ok bool, err error) {
	c, err := a.token()
	if err != nil || c != '{' {
		return err == nil && c == '[', err
	}
	if key == "" {
		return false, nil
	}
	for {
		if c, err = a.token(); err != nil || c != '"' {
			return false, err
		}
		found, err := a.value(c, true)
		if err != nil {
			return false, err
		}
		name := string(found)
		if c, err = a.token(); err != nil || c != ':' {
			return false, err
		}
		if c, err = a.token(); err != nil {
			return false, err
		}
		if name == `"`+key+`"` {
			return c == '[', nil
		}
		if _, err = a.value(c, false); err != nil {
			return false, err
		}
		if c, err = a.token(); err != nil || c != ',' {
			return false, err
		}
	}
}

func (a *arrayRows) next() (rowText, error) {
	c, err := a.token()
	if err == nil && c == ',' {
		c, err = a.token()
	}
	if err != nil {
		return rowText{line: a.line}, err
	}
	if c == ']' {
		return rowText{line: a.line}, io.EOF
	}
	row := rowText{offset: a.offset - 1, line: a.line}
	row.text, err = a.value(c, true)
	row.end = a.offset
	if errors.Is(err, io.EOF) { // cut short: what there is of it is a row that can't be parsed
		err = nil
	}
	return row, err
}

// token is the next byte that is no space. A byte order mark is a space.
func (a *arrayRows) token() (byte, error) {
	for {
		c, err := a.read()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', byteOrderMark[0], byteOrderMark[1], byteOrderMark[2]:
		default:
			return c, nil
		}
	}
}

func (a *arrayRows) read() (byte, error) {
	c, err := a.r.ReadByte()
	if err == nil {
		a.offset++
		if c == '\n' {
			a.line++
		}
	}
	return c, err
}

// value reads the value that begins with c; kept, it is valid until the next one is read.
func (a *arrayRows) value(c byte, keep bool) ([]byte, error) {
	a.text = a.text[:0]
	depth, quoted := 0, false
	for {
		if keep {
			if a.text = append(a.text, c); len(a.text) > maxRowBytes {
				return nil, errTooLong
			}
		}
		switch {
		case quoted && c == '\\':
			escaped, err := a.read()
			if err != nil {
				return a.text, err
			}
			if keep {
				a.text = append(a.text, escaped)
			}
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth <= 0 && !quoted && (c == '"' || c == '}' || c == ']' || a.ends()) {
			return a.text, nil
		}
		var err error
		if c, err = a.read(); err != nil {
			return a.text, err
		}
	}
}

// ends reports whether a bare value (a number, true) ends here.
func (a *arrayRows) ends() bool {
	next, err := a.r.Peek(1)
	return err != nil || bytes.ContainsAny(next, ",]} \t\r\n")
}
