package host

import (
	"io"
	"os"
)

const (
	residentLogName = "server.log"
	residentLogSize = 32 << 20 // bytes of each of the two parts
)

// MaskedLog passes on what is written to it with secrets masked, line by line. Flush passes on an unfinished line.
type MaskedLog interface {
	io.Writer
	Flush() error
}

// boundedLog is a file that begins anew when it is full; the part before is kept beside it. Writing never fails: on a
// full disk lines are lost, and the server goes on.
type boundedLog struct {
	path  string
	limit int64 // bytes
	file  *os.File
	size  int64
}

// Write implements io.Writer.
func (l *boundedLog) Write(p []byte) (int, error) {
	if l.file != nil && l.size+int64(len(p)) > l.limit {
		l.close()
		_ = os.Rename(l.path, l.path+".1") // failing, the file goes on growing
	}
	if l.file == nil {
		l.open()
	}
	if l.file != nil {
		n, _ := l.file.Write(p) // see above
		l.size += int64(n)
	}
	return len(p), nil
}

func (l *boundedLog) open() {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	l.file, l.size = f, 0
	if info, err := f.Stat(); err == nil {
		l.size = info.Size()
	}
}

func (l *boundedLog) close() {
	if l.file != nil {
		_ = l.file.Close() // nothing is buffered
		l.file = nil
	}
}
