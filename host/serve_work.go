package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// WorkFolder is what the agent keeps on its machine.
type WorkFolder struct {
	Path    string `json:"path"`
	Living  int    `json:"living"`  // commands that run
	Ended   int    `json:"ended"`   // commands that have ended, whose log and status are kept
	Bytes   int64  `json:"bytes"`   // of all files in it
	Program bool   `json:"program"` // the agent itself lies there
}

// WorkFolder tells what the agent keeps on the machine.
func (r *Remote) WorkFolder(ctx context.Context) (WorkFolder, error) {
	var w WorkFolder
	if err := r.call(ctx, "folder", struct{}{}, &w); err != nil {
		return w, r.told("look into the work folder", err)
	}
	return w, nil
}

// folder tells what lies in the work folder.
func (a *agent) folder(context.Context, struct{}) (WorkFolder, error) {
	w := WorkFolder{Path: a.Work}
	all, err := runFolders(a.Work)
	if err != nil {
		return w, err
	}
	for _, f := range all {
		if a.over(f, 0) {
			w.Ended++
		} else {
			w.Living++
		}
	}
	_, err = os.Lstat(filepath.Join(a.Work, "bin"))
	w.Program = err == nil
	err = filepath.WalkDir(a.Work, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				w.Bytes += info.Size()
			}
		}
		return nil // what goes away meanwhile is not counted
	})
	return w, err
}

// cleanArgs say what is removed beside the runs that have ended.
type cleanArgs struct {
	Program bool `json:"program,omitempty"` // the agent itself, too, if nothing runs: it is copied anew when it is needed
}

// clean removes every run that has ended, and the copied files; the number is how many runs. The work folder itself goes
// when it is empty, as soon as the lease is given back.
func (a *agent) clean(ctx context.Context, args cleanArgs) (int, error) {
	if args.Program {
		a.awaitKeepers(ctx)
	}
	n, err := a.removeEnded(0)
	err = errors.Join(err, os.RemoveAll(filesFolder(a.Work)))
	left, told := runFolders(a.Work)
	if args.Program && err == nil && told == nil && len(left) == 0 {
		// The program that runs now, and the one that holds the lease, live on without their file.
		err = os.RemoveAll(filepath.Join(a.Work, "bin"))
		_ = os.Remove(filepath.Join(a.Work, "run")) // only if it is empty
	}
	return n, errors.Join(err, told)
}

// lingering is how long a keeper may take to see that the group of its ended process is gone.
const lingering = 2 * lastLinger

// awaitKeepers gives the keepers of ended processes the time to end.
func (a *agent) awaitKeepers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lingering)
	defer cancel()
	busy := func(f runFolder) bool { return f.has("rc") && f.kept() }
	for all, err := runFolders(a.Work); err == nil && slices.ContainsFunc(all, busy) && pause(ctx, lastWatch); {
		all, err = runFolders(a.Work)
	}
}

// removeIfEmpty removes the folder of the leases of a work folder, and that one, where nothing is left in them and clean has
// taken the agent away. Otherwise they are needed again.
func removeIfEmpty(leases string) {
	if _, err := os.Lstat(filepath.Join(filepath.Dir(leases), "run")); err == nil {
		return
	}
	if os.Remove(leases) == nil {
		_ = os.Remove(filepath.Dir(leases))
	}
}
