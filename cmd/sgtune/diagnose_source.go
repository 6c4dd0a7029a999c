package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"

	"sgtune/tuner"
)

// stdinName stands for standard input among the arguments.
const stdinName = "-"

const (
	readSize = 256 << 10 // bytes handed to the log reader at once
	// maxWindow bounds what a .zst file can make us keep. zstd's own levels 1 to 19 stay at or below
	// 8 MiB; --ultra and --long go above.
	maxWindow = 8 << 20
)

// source is one log: the concatenation of its parts, decompressed.
type source struct {
	parts     []*part
	truncated string // name of the part whose compressed data ends too early, "" when none
}

// part is one file of a log, or standard input.
type part struct {
	name  string
	file  *os.File // nil: standard input that is no file
	from  io.Reader
	plain bool // read as it is, from a file that can be read twice
}

// openLog opens every part and refuses what cannot be one, each on a line of its own.
func openLog(names []string, stdin io.Reader) (*source, error) {
	s := &source{}
	var wrong tuner.Problems
	used := false
	for _, name := range names {
		if name == stdinName {
			if used {
				wrong = append(wrong, tuner.Mistake{File: name, Text: "standard input can be read once only; name it once"})
			}
			used = true
			s.parts = append(s.parts, &part{name: "standard input", from: stdin})
			continue
		}
		f, err := openRegular(name, "the log")
		var p tuner.Problems
		switch {
		case errors.As(err, &p):
			wrong = append(wrong, p...)
		case err != nil:
			s.close()
			return nil, err
		default:
			s.parts = append(s.parts, &part{name: name, file: f, from: f})
		}
	}
	if len(wrong) > 0 {
		s.close()
		return nil, wrong
	}
	return s, nil
}

// openRegular opens a file for reading, or says in one line why it is none.
func openRegular(path, what string) (*os.File, error) {
	wrong := func(text string) error { return tuner.Problems{{File: path, Text: what + " " + text}} }
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, wrong("does not exist; check the path")
	case err != nil:
		return nil, wrong("cannot be opened: " + reason(err))
	}
	info, err := f.Stat()
	if err == nil && !info.IsDir() {
		return f, nil
	}
	_ = f.Close() // nothing was written
	if err != nil {
		return nil, wrong("cannot be read: " + reason(err))
	}
	return nil, wrong("is a folder; name the file in it")
}

func (s *source) close() {
	for _, p := range s.parts {
		if p.file != nil {
			_ = p.file.Close() // only read
		}
	}
}

// plainFile is the log's only part when that is an uncompressed file, which can be read again.
func (s *source) plainFile() *os.File {
	if len(s.parts) != 1 || !s.parts[0].plain {
		return nil
	}
	return s.parts[0].file
}

// Compressed data begins with these bytes, whatever the file's name says.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// isZstd knows a frame, and the skippable one that parallel compressors begin with.
func isZstd(magic []byte) bool {
	return bytes.HasPrefix(magic, zstdMagic) || len(magic) >= 4 && magic[0]>>4 == 5 && bytes.Equal(magic[1:4], []byte{0x2a, 0x4d, 0x18})
}

// read hands the whole log to take, piece by piece.
func (s *source) read(take func([]byte) error) error {
	buf := make([]byte, readSize)
	for _, p := range s.parts {
		if err := p.read(buf, take); errors.Is(err, errCut) {
			s.truncated = p.name
		} else if err != nil {
			return err
		}
	}
	return nil
}

// errCut says that compressed data ends too early: the machine died while it was written.
var errCut = errors.New("the compressed data ends too early")

func (p *part) read(buf []byte, take func([]byte) error) error {
	head := bufio.NewReaderSize(p.from, 4<<10)
	magic, _ := head.Peek(len(zstdMagic)) // a shorter part is plain
	var err error
	var from io.Reader = head
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		var z *gzip.Reader
		if z, err = gzip.NewReader(head); err == nil {
			from = z
		}
	case isZstd(magic):
		var z *zstd.Decoder
		z, err = zstd.NewReader(head, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			defer z.Close()
			from = z
		}
	default:
		p.plain = p.file != nil
	}
	some := false
	for err == nil {
		var n int
		if n, err = from.Read(buf); n > 0 {
			some = true
			if err := take(buf[:n]); err != nil {
				return err
			}
		}
	}
	return p.explain(err, some)
}

// explain words why reading ended; some says that there was something to judge.
func (p *part) explain(err error, some bool) error {
	wrong := func(text string) error { return tuner.Problems{{File: p.name, Text: text}} }
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF) && some:
		return errCut
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return wrong(fmt.Sprintf("was compressed with --long or --ultra and needs more than %d MiB; run zstd -dc --long=31 FILE | sgtune diagnose", maxWindow>>20))
	case p.plain:
		return wrong("cannot be read: " + reason(err))
	}
	return wrong("the compressed data is damaged: " + reason(err) + "; unpack what is left by hand (zcat, zstdcat) and pipe it in")
}
