package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ServerEnv is the environment variable that marks every process of a Resident with its folder. It is not MarkerEnv:
// a resident is no trial, and whatever cleans up after trials leaves it alone.
const ServerEnv = "SGTUNE_SERVER"

// ResidentSpec is a server to be left running on a host.
type ResidentSpec struct {
	Name    string  // a plain file name, usually the study's; one resident of a name at a time
	Command Command // Argv, Env and Dir; the rest is not used
	Port    int     // it listens on, for who reads about it
	// Secrets are exact values that its log must not hold, beside those that show themselves.
	Secrets []string
	// Keeper is the command that runs StayMain with the folder as a last word. A Remote has its own.
	Keeper []string
}

// Resident is a server that was left running: a keeper starts it again when it dies, and both outlive the sgtune that
// began them, its link and its logout. It does not survive a restart of the machine.
type Resident struct {
	Name    string    `json:"name"`
	Folder  string    `json:"folder"` // on its host, for its owner only
	Port    int       `json:"port"`
	Keeper  ID        `json:"keeper"`
	Kept    bool      `json:"kept"`               // the keeper lives
	Unit    string    `json:"unit,omitempty"`     // systemd unit of the keeper, "" = a session of its own
	OwnUnit bool      `json:"own_unit,omitempty"` // the unit is the user's and not the system's
	NoUnit  string    `json:"no_unit,omitempty"`  // why there is no unit although the machine runs systemd
	Server  ID        `json:"server"`             // its main process; PID 0 between a death and the next start
	PIDs    []int     `json:"pids,omitempty"`     // all processes of the server that live
	Starts  int       `json:"starts"`             // so far
	Since   time.Time `json:"since"`              // of the newest start
	Ended   string    `json:"ended,omitempty"`    // how the server ended last, "" = it never did
	Log     string    `json:"log"`                // its log on its host, secrets masked
	Tail    string    `json:"tail,omitempty"`     // the end of that log
	Argv    []string  `json:"argv,omitempty"`     // as it was started; holds secrets
	Stopped bool      `json:"stopped,omitempty"`  // somebody stopped it
	StopBy  string    `json:"stop_by,omitempty"`  // command that stops it, of one that has no keeper
}

// ErrOccupied is wrapped by Settle's error when another server of the name runs already.
var ErrOccupied = errors.New("a server that was left running here before is still there")

// Ends the stay of a server.
const (
	residentGrace = 30 * time.Second // from SIGTERM to SIGKILL
	dismissTime   = residentGrace + 15*time.Second
)

// Stop is the command that ends the server and its keeper, on their host.
func (r Resident) Stop() string {
	switch {
	case r.StopBy != "":
		return r.StopBy
	case r.Unit != "" && r.OwnUnit:
		return "systemctl --user stop " + r.Unit
	case r.Unit != "":
		return "systemctl stop " + r.Unit
	case r.Kept:
		return fmt.Sprintf("kill %d", r.Keeper.PID)
	}
	words := []string{"kill", "-9"}
	for _, pid := range r.PIDs {
		words = append(words, fmt.Sprint(pid))
	}
	return strings.Join(words, " ")
}

// Settle starts a server that stays, or finds the one that a Settle of the same command has started before.
func (l *Local) Settle(ctx context.Context, s ResidentSpec) (Resident, error) {
	return l.settle(ctx, s, thisSystemd())
}

func (l *Local) settle(ctx context.Context, s ResidentSpec, units systemd) (Resident, error) {
	dir, err := l.residentDir()
	if err != nil {
		return Resident{}, err
	}
	if _, err := folderOf(dir, s.Name); err != nil {
		return Resident{}, fmt.Errorf("leave a server running: %w", err)
	}
	f := runFolder(filepath.Join(dir, s.Name))
	if r, ok := l.resident(ctx, f); ok {
		if slices.Equal(r.Argv, s.Command.Argv) && r.Kept {
			return r, nil
		}
		return r, fmt.Errorf("%w (pid %d); stop it: %s", ErrOccupied, r.main(), r.Stop())
	}
	if err := l.writeOrder(f, s); err != nil {
		return Resident{}, fmt.Errorf("leave a server running: %w", err)
	}
	if err := l.startKeeper(ctx, f, s.Keeper, units); err != nil {
		return Resident{}, fmt.Errorf("leave a server running: %w", err)
	}
	r, ok := l.resident(ctx, f)
	if !ok {
		return r, fmt.Errorf("leave a server running: its keeper ended at once; see %s", f.path("trouble"))
	}
	return r, nil
}

// main is the process that stands for the server.
func (r Resident) main() int {
	return cmp.Or(r.Server.PID, append(r.PIDs, r.Keeper.PID)[0])
}

// Residents are the servers that were left running here and still are, by name.
func (l *Local) Residents(ctx context.Context) ([]Resident, error) {
	dir, err := l.residentDir()
	if err != nil {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the servers that were left running: %w", err)
	}
	var all []Resident
	for _, e := range list {
		if r, ok := l.resident(ctx, runFolder(filepath.Join(dir, e.Name()))); ok {
			all = append(all, r)
		}
	}
	return all, nil
}

// Dismiss ends a server that was left running, and its keeper. One that is not there is no error.
func (l *Local) Dismiss(ctx context.Context, name string) error {
	dir, err := l.residentDir()
	if err != nil {
		return err
	}
	r, ok := l.resident(ctx, runFolder(filepath.Join(dir, name)))
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dismissTime)
	defer cancel()
	if err := signal(r.Keeper.PID, r.Keeper.StartTicks, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the keeper of server %s: %w", name, err)
	}
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		if _, lives := alive(r.Keeper, l.boot); !lives {
			break
		}
		if !pause(ctx, wait) {
			return fmt.Errorf("stop the keeper of server %s (pid %d): %w", name, r.Keeper.PID, context.Cause(ctx))
		}
	}
	return sweepServer(ctx, r.Folder)
}

// residentDir is the folder of this host's residents; home folders are often shared between machines.
func (l *Local) residentDir() (string, error) {
	lease, err := l.leasePath()
	if err != nil {
		return "", err
	}
	name := strings.TrimSuffix(filepath.Base(lease), ".json")
	return filepath.Join(filepath.Dir(lease), "servers", strings.TrimPrefix(name, "lease-")), nil
}

// resident reads what a folder says and what lives of it; false when nothing does.
func (l *Local) resident(ctx context.Context, f runFolder) (Resident, bool) {
	var order residentOrder
	var s residentState
	if f.read("order", &order) != nil {
		return Resident{}, false
	}
	_ = f.read("state", &s) // none before the keeper has begun
	r := Resident{
		Name: f.key(), Folder: string(f), Port: order.Port, Keeper: s.Keeper, Unit: order.Unit, OwnUnit: order.OwnUnit, NoUnit: order.NoUnit,
		Server: s.Server, Starts: s.Starts, Since: s.Since, Ended: s.Ended, Stopped: s.Stopped, Log: f.path(residentLogName), Argv: texts(order.Argv),
	}
	_, r.Kept = alive(s.Keeper, l.boot)
	all, err := scan()
	if err != nil {
		return r, false
	}
	for _, p := range ofServer(ctx, all, string(f)) {
		r.PIDs = append(r.PIDs, p.pid)
	}
	if !slices.Contains(r.PIDs, r.Server.PID) {
		r.Server = ID{}
	}
	r.Tail = lastOf(r.Log)
	return r, r.Kept || len(r.PIDs) > 0
}

// ofServer lists the living processes that carry a folder in ServerEnv, oldest first.
func ofServer(ctx context.Context, all map[int]procStat, folder string) []procStat {
	line := lineage(all)
	var list []procStat
	for pid, s := range all {
		if line[pid] || s.gone() || s.flags&kernelThread != 0 {
			continue
		}
		if v, ok := envValue(readEnviron(ctx, pid), ServerEnv); ok && v == folder {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b procStat) int {
		return cmp.Or(cmp.Compare(a.startTicks, b.startTicks), cmp.Compare(a.pid, b.pid))
	})
	return list
}

// sweepServer kills what is left of a server and waits until it is gone.
func sweepServer(ctx context.Context, folder string) error {
	return end(ctx, "server "+filepath.Base(folder), func(ctx context.Context) ([]procStat, error) {
		all, err := scan()
		return ofServer(ctx, all, folder), err
	})
}

func texts(words [][]byte) []string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	return out
}

// lastOf is the end of a file as text, "" when it cannot be read.
func lastOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // opened for reading
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, min(info.Size(), runTail))
	n, _ := f.ReadAt(b, info.Size()-int64(len(b))) // what can be read counts
	return strings.ToValidUTF8(string(b[:n]), "\uFFFD")
}
