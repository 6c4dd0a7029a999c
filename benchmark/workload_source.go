package benchmark

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// fileBytes is the text of a workload file, to be read anywhere, again and again.
type fileBytes struct {
	path string
	at   io.ReaderAt
	size int64
	file *os.File // nil for a text in memory; open as long as rows are read, closed by the garbage collector
	mod  time.Time
}

// openFile opens a workload file. What is compressed (gzip, told by its content) or can be read only
// once (a pipe) is unpacked into a temporary file without a name, which ends with the process.
func openFile(path string) (*fileBytes, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be opened: %w", path, withoutPath(err))
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: cannot be looked at: %w", path, withoutPath(err)), f.Close())
	}
	if info.IsDir() {
		return nil, errors.Join(fmt.Errorf("%s: is a folder; name a workload file", path), f.Close())
	}
	if !info.Mode().IsRegular() {
		return spool(path, f)
	}
	var magic [2]byte
	if n, _ := f.ReadAt(magic[:], 0); n == 2 && magic == gzipMagic {
		return spool(path, f)
	}
	return &fileBytes{path: path, at: f, size: info.Size(), file: f, mod: info.ModTime()}, nil
}

var gzipMagic = [2]byte{0x1f, 0x8b}

// spool copies what can be read only from the front into a temporary file and closes it.
func spool(path string, from *os.File) (*fileBytes, error) {
	defer from.Close() //nolint:errcheck // read only
	var magic [2]byte
	n, err := io.ReadFull(from, magic[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%s: cannot be read: %w", path, withoutPath(err))
	}
	text := io.MultiReader(bytes.NewReader(magic[:n]), from)
	if magic == gzipMagic {
		if text, err = gzip.NewReader(text); err != nil {
			return nil, fmt.Errorf("%s: is damaged gzip: %w", path, err)
		}
	}
	to, err := os.CreateTemp("", "sgtune-workload-")
	if err != nil {
		return nil, fmt.Errorf("%s: no temporary file to unpack it into: %w", path, err)
	}
	_ = os.Remove(to.Name()) // it lives on until it is closed
	size, err := io.Copy(to, text)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: cannot be unpacked after %d bytes: %w", path, size, withoutPath(err)), to.Close())
	}
	return &fileBytes{path: path, at: to, size: size, file: to}, nil
}

// changed reports whether the file is another one than when it was opened. Unpacked copies never are.
func (b *fileBytes) changed() bool {
	if b.file == nil || b.mod.IsZero() {
		return false
	}
	info, err := b.file.Stat()
	return err != nil || info.Size() != b.size || !info.ModTime().Equal(b.mod)
}

// section reads [from, to).
func (b *fileBytes) section(from, to int64) *io.SectionReader {
	return io.NewSectionReader(b.at, from, max(0, to-from))
}

// readError says where reading failed.
func (b *fileBytes) readError(line int, err error) error {
	if errors.Is(err, errTooLong) {
		return fmt.Errorf("%s:%d: a row is longer than %d MB; is this a workload file?", b.path, line, maxRowBytes>>20)
	}
	return fmt.Errorf("%s:%d: cannot be read: %w", b.path, line, withoutPath(err))
}

// withoutPath drops the path an *os.PathError repeats.
func withoutPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
