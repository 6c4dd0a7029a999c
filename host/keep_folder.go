package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// runFolder is the private folder of one started command on its host. Its files:
//
//	command   what is to be started (wireCommand)
//	lock      locked by the keeper as long as it lives
//	begun     a keeper was about to start the command
//	id        the process (ID): from here on it exists
//	watcher   the keeper (ID), or the one that guards the process after its death
//	first     how all was at the guard's first look (guardBeginning)
//	failed    why it could not be started, in words
//	log       what it and its children wrote
//	stopped   it was killed on purpose, so its death proves nothing about memory
//	rc        how it ended (keptExit)
//
// Each is written under another name and renamed, so that no reader sees half of one.
type runFolder string

// keptExit is the file rc.
type keptExit struct {
	Exit      Exit `json:"exit"`
	GroupGone bool `json:"group_gone"` // the process group was seen empty: its number may be others' now
}

// exitRoom is the size of rc, reserved before the start: on a full disk the exit status can still be written.
const exitRoom = 512

func (f runFolder) path(name string) string { return filepath.Join(string(f), name) }

func (f runFolder) has(name string) bool {
	_, err := os.Lstat(f.path(name))
	return err == nil
}

// read decodes a file; fs.ErrNotExist when it is not there.
func (f runFolder) read(name string, v any) error {
	b, err := os.ReadFile(f.path(name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", f.path(name), err)
	}
	return nil
}

// write encodes a file in one step.
func (f runFolder) write(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path(name), err)
	}
	return writeWhole(f.path(name), append(b, '\n'))
}

// writeWhole writes a private file so that readers see all of it or nothing.
func writeWhole(path string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// reserve makes room for rc.
func (f runFolder) reserve() error {
	return writeWhole(f.path(".rc"), []byte(strings.Repeat(" ", exitRoom)))
}

// writeExit writes rc into the room that was reserved for it, or anew when that is used up.
func (f runFolder) writeExit(e keptExit) error {
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write exit status: %w", err)
	}
	room, err := os.OpenFile(f.path(".rc"), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return writeWhole(f.path("rc"), append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write exit status: %w", err)
	}
	_, err = room.WriteAt(append(b, '\n'), 0)
	if err = errors.Join(err, room.Sync(), room.Close()); err == nil {
		err = os.Rename(f.path(".rc"), f.path("rc"))
	}
	if err != nil {
		return fmt.Errorf("write exit status: %w", err)
	}
	return nil
}

// lock takes the keeper's lock; nil without an error when another keeper has it.
func (f runFolder) lock() (*os.File, error) {
	file, err := os.OpenFile(f.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return file, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = nil
	}
	return nil, errors.Join(err, file.Close())
}

// claim is lock for who is to be the keeper: a look of others whether one lives holds the lock for a moment.
func (f runFolder) claim(ctx context.Context) (*os.File, error) {
	for try := 0; ; try++ {
		file, err := f.lock()
		if file != nil || err != nil || try == 5 || !pause(ctx, 20*time.Millisecond) {
			return file, err
		}
	}
}

// kept reports whether a keeper lives.
func (f runFolder) kept() bool {
	file, err := f.lock()
	if file == nil {
		return err == nil
	}
	_ = file.Close() // which lets the lock go
	return false
}

// runFolders are all runs of a work folder, in no order.
func runFolders(work string) ([]runFolder, error) {
	list, err := os.ReadDir(filepath.Join(work, "run"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var all []runFolder
	for _, e := range list {
		if e.IsDir() {
			all = append(all, runFolder(filepath.Join(work, "run", e.Name())))
		}
	}
	return all, nil
}

// key is the name that a run has on the link.
func (f runFolder) key() string { return filepath.Base(string(f)) }

// folderOf is the folder of a run by its key, which must be a plain name.
func folderOf(work, key string) (runFolder, error) {
	if key == "" || key[0] == '.' || strings.ContainsAny(key, "/\\\x00") || len(key) > 100 {
		return "", fmt.Errorf("%q is no name for a run", key)
	}
	return runFolder(filepath.Join(work, "run", key)), nil
}
