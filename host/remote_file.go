package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// filePiece is how much of a file one request carries, in bytes.
const filePiece = 1 << 20

// fileEnding is what the copy of a file keeps of its name.
var fileEnding = regexp.MustCompile(`(\.[A-Za-z0-9]{1,16}){0,2}$`)

// Copy puts a file of this machine into the work folder of the other and returns its path there. A file that is there
// already, by its checksum, is not sent again; one that was sent in part goes on where it ended.
func (r *Remote) Copy(ctx context.Context, path string) (string, error) {
	there, err := r.copyFile(ctx, path)
	if err != nil {
		return "", r.told(fmt.Sprintf("copy %s", path), err)
	}
	return there, nil
}

func (r *Remote) copyFile(ctx context.Context, path string) (string, error) {
	sum, err := fileSum(path)
	if err != nil {
		return "", err
	}
	name := sum + fileEnding.FindString(filepath.Base(path))
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	var state fileState
	if err := r.call(ctx, "file", fileArgs{Name: name}, &state); err != nil {
		return "", err
	}
	piece := make([]byte, filePiece)
	for offset := state.Have; state.Path == ""; {
		n, err := f.ReadAt(piece, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		args := fileArgs{Name: name, Offset: offset, Data: piece[:n], Last: err != nil}
		if err := r.call(ctx, "file", args, &state); err != nil {
			return "", err
		}
		if offset += int64(n); args.Last && state.Path == "" {
			return "", errors.New("it was taken and is not there")
		}
	}
	return state.Path, nil
}
