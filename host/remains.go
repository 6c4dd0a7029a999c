package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A killed server leaves files behind: segments of shared memory, which are memory, and the sockets on which its
// processes heard each other. A file has no marker. So it is noted whose it is while a marked process still has it
// open, and it is removed, when no marked process lives any more, only if all of this holds:
//
//   - a marked process had it open, mapped it, or listened on it;
//   - it is still that file (device, inode, birth), of the same owner as that process;
//   - it was born after the first of these processes was started: who only used it did not make it;
//   - nobody has it open, mapped or listens on it now;
//   - in /dev/shm: it lies there directly and is named as SGLang and its libraries name theirs (shmNames). A model or a
//     cache that somebody keeps in /dev/shm is not.

// shmFolder is where POSIX shared memory lies.
const shmFolder = "/dev/shm"

// shmNames are the beginnings of names of shared memory that SGLang (0.5.x) and what it is built on make.
var shmNames = []string{
	"sglang_",               // load snapshots, host pools without memfd
	"sgl_shm_",              // names with a pid
	"multi_tokenizer_args_", // several tokenizer workers
	"psm_",                  // Python's multiprocessing.shared_memory
	"sem.",                  // POSIX semaphores: Python, loky
	"torch_",                // tensors between processes
	"nccl-",                 // NCCL's transport inside a machine
	"__KMP_REGISTERED_LIB_", // OpenMP
}

// noteEvery is how often Usage notes the files of living processes, real time.
const noteEvery = 10 * time.Second

// remains is what the processes of one marker made.
type remains struct {
	Marker string      `json:"marker"`
	BootID string      `json:"boot_id"`
	Since  time.Time   `json:"since"` // when the first process that was seen was started
	Files  []RemainsOf `json:"files"`
}

// RemainsOf is one file that a process of a trial made and that outlives it.
type RemainsOf struct {
	Path   string    `json:"path"`
	Device uint64    `json:"device"`
	Inode  uint64    `json:"inode"`
	Born   time.Time `json:"born"` // with path, device and inode: a number may be given to another file at once
	UID    uint32    `json:"uid"`  // of the owner, who is that of the process
	Socket bool      `json:"socket,omitempty"`
	Bytes  int64     `json:"bytes,omitempty"`
	Why    string    `json:"why,omitempty"` // why it was not removed, "" when it was
}

// Memory reports whether it is a segment of shared memory: as long as it is there, it takes memory.
func (r RemainsOf) Memory() bool { return !r.Socket }

// notes guards the folder of remains of one Local.
type notes struct {
	mu   sync.Mutex
	last time.Time // real time of the last note by Usage
}

// due reports whether it is time for Usage to note again.
func (n *notes) due() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.last) < noteEvery {
		return false
	}
	n.last = time.Now()
	return true
}

// note remembers the files of living marked processes. It is a precaution: what cannot be noted is not removed later.
func (l *Local) note(list []candidate) {
	byMarker := map[string][]candidate{}
	for _, c := range list {
		if c.marker != "" {
			byMarker[c.marker] = append(byMarker[c.marker], c)
		}
	}
	if len(byMarker) == 0 {
		return
	}
	listening := unixListeners()
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	for marker, members := range byMarker {
		r := l.noted(marker)
		r.Marker, r.BootID = marker, l.boot
		changed := false
		for _, c := range members {
			if start, err := startedAt(c.procStat); err == nil && (r.Since.IsZero() || start.Before(r.Since)) {
				r.Since, changed = start, true
			}
			for _, f := range openRemains(c.pid, listening) {
				if !slices.ContainsFunc(r.Files, f.same) {
					r.Files, changed = append(r.Files, f), true
				}
			}
		}
		if changed && len(r.Files) > 0 {
			_ = l.keepNoted(r)
		}
	}
}

// noteMarked is note for the living processes of a marker.
func (l *Local) noteMarked(ctx context.Context, marker string) {
	if marker == "" {
		return
	}
	if all, err := scan(); err == nil {
		l.note(l.marked(ctx, all, marker))
	}
}

func (r RemainsOf) same(other RemainsOf) bool {
	return r.Path == other.Path && r.Device == other.Device && r.Inode == other.Inode && r.Born.Equal(other.Born) && r.UID == other.UID
}

func (l *Local) remainsFolder() (string, error) {
	lease, err := l.leasePath()
	return filepath.Join(filepath.Dir(lease), "remains"), err
}

// noted reads what was noted of a marker; empty when nothing was, or not since the machine was started.
func (l *Local) noted(marker string) remains {
	dir, err := l.remainsFolder()
	if err != nil {
		return remains{}
	}
	b, err := os.ReadFile(filepath.Join(dir, url.PathEscape(marker)+".json"))
	if err != nil {
		return remains{}
	}
	return l.parseNoted(b)
}

func (l *Local) parseNoted(b []byte) remains {
	var r remains
	if json.Unmarshal(b, &r) != nil || r.BootID != l.boot {
		return remains{}
	}
	return r
}

// keepNoted writes what is noted of a marker, or removes it when nothing is.
func (l *Local) keepNoted(r remains) error {
	dir, err := l.remainsFolder()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, url.PathEscape(r.Marker)+".json")
	if len(r.Files) == 0 {
		return removeIfThere(path)
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return writeWhole(path, b)
}

// allNoted is what is noted of each marker, one alone when it is given.
func (l *Local) allNoted(marker string) ([]remains, error) {
	if marker != "" {
		return []remains{l.noted(marker)}, nil
	}
	dir, err := l.remainsFolder()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list what trials left: %w", err)
	}
	var all []remains
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		if r := l.parseNoted(b); r.Marker != "" {
			all = append(all, r)
		} else if bytes.HasPrefix(b, []byte("{")) { // of an earlier start of the machine: neither memory nor listeners are left of it
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	return all, nil
}

// Remains lists the files that dead processes of a marker left and that RemoveRemains would remove, those of all
// markers when it is empty. Those of a marker that still has living processes are not among them.
func (l *Local) Remains(ctx context.Context, marker string) ([]RemainsOf, error) {
	return l.eachRemains(ctx, marker, func(RemainsOf) error { return nil })
}

// RemoveRemains removes the files that dead processes of a marker left, of all markers when it is empty. It returns
// all of them; those that are still there say why.
func (l *Local) RemoveRemains(ctx context.Context, marker string) ([]RemainsOf, error) {
	return l.eachRemains(ctx, marker, func(f RemainsOf) error { return removeIfThere(f.Path) })
}

// eachRemains calls do for each file that is certainly ours and unused.
func (l *Local) eachRemains(ctx context.Context, marker string, do func(RemainsOf) error) ([]RemainsOf, error) {
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	noted, err := l.allNoted(marker)
	if err != nil {
		return nil, err
	}
	all, err := scan()
	if err != nil {
		return nil, err
	}
	var ours []RemainsOf
	for _, r := range noted {
		if len(r.Files) == 0 || len(l.marked(ctx, all, r.Marker)) > 0 {
			continue
		}
		r.Files = slices.DeleteFunc(r.Files, func(f RemainsOf) bool { return !f.made(r.Since) })
		users := usersOf(r.Files, all)
		for i := range r.Files {
			f := &r.Files[i]
			if f.Why = users[i]; f.Why == "" {
				if err := do(*f); err != nil {
					f.Why = err.Error()
				}
			}
		}
		ours = append(ours, r.Files...)
		r.Files = slices.DeleteFunc(r.Files, func(f RemainsOf) bool { _, err := os.Lstat(f.Path); return err != nil })
		if err := l.keepNoted(r); err != nil {
			return ours, fmt.Errorf("note what trials left: %w", err)
		}
	}
	return ours, context.Cause(ctx)
}
