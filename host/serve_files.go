package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// fileName is the name of a copied file: its SHA-256, and an ending that tells its format.
var fileName = regexp.MustCompile(`^[0-9a-f]{64}(\.[A-Za-z0-9]{1,16}){0,2}$`)

// fileArgs carry a piece of a file, or ask whether the file is there.
type fileArgs struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset,omitempty"` // bytes
	Data   []byte `json:"data,omitempty"`
	Last   bool   `json:"last,omitempty"` // Data ends the file
}

// fileState is what the machine has of a file.
type fileState struct {
	Path string `json:"path,omitempty"` // of the whole, checked file; "" as long as there is none
	Have int64  `json:"have,omitempty"` // bytes that came already
}

// filesFolder is where copied files lie in a work folder.
func filesFolder(work string) string { return filepath.Join(work, "files") }

// file takes a piece of a file; without one it only says what is there. A piece may come twice. The file gets its name
// when it is whole and its checksum is right.
func (a *agent) file(_ context.Context, args fileArgs) (fileState, error) {
	if !fileName.MatchString(args.Name) {
		return fileState{}, fmt.Errorf("copy file: %q is no checksum", args.Name)
	}
	whole := filepath.Join(filesFolder(a.Work), args.Name)
	part := filepath.Join(filesFolder(a.Work), ".part-"+args.Name)
	switch sum, err := fileSum(whole); {
	case err == nil && sum == args.Name[:len(sum)]:
		return fileState{Path: whole}, nil
	case err == nil: // damaged since
		if err := os.Remove(whole); err != nil {
			return fileState{}, fmt.Errorf("copy file: %w", err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fileState{}, fmt.Errorf("copy file: %w", err)
	}
	if err := os.MkdirAll(filesFolder(a.Work), 0o700); err != nil {
		return fileState{}, fmt.Errorf("copy file: %w", err)
	}
	have, err := writePiece(part, args)
	if err != nil || !args.Last {
		return fileState{Have: have}, err
	}
	sum, err := fileSum(part)
	if err != nil {
		return fileState{}, fmt.Errorf("copy file: %w", err)
	}
	if sum != args.Name[:len(sum)] {
		return fileState{}, errors.Join(errors.New("copy file: it arrived damaged, or changed while it was copied"), os.Remove(part))
	}
	if err := os.Rename(part, whole); err != nil {
		return fileState{}, fmt.Errorf("copy file: %w", err)
	}
	return fileState{Path: whole}, nil
}

// writePiece writes a piece to its place and returns how long the file is then.
func writePiece(path string, args fileArgs) (have int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return 0, fmt.Errorf("copy file: %w", err)
	}
	defer func() {
		if closed := f.Close(); err == nil && closed != nil {
			err = fmt.Errorf("copy file: %w", closed)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("copy file: %w", err)
	}
	if args.Offset > info.Size() {
		return 0, fmt.Errorf("copy file: a piece at %d does not follow %d bytes", args.Offset, info.Size())
	}
	if len(args.Data) > 0 {
		if _, err := f.WriteAt(args.Data, args.Offset); err != nil {
			return 0, fmt.Errorf("copy file: %w (is the disk full?)", err)
		}
	}
	if args.Last {
		if err := errors.Join(f.Truncate(args.Offset+int64(len(args.Data))), f.Sync()); err != nil {
			return 0, fmt.Errorf("copy file: %w", err)
		}
	}
	return max(info.Size(), args.Offset+int64(len(args.Data))), nil
}

// fileSum is the SHA-256 of a file, hexadecimal.
func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
