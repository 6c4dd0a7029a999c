package host

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// candidate is a living process with a marker.
type candidate struct {
	procStat
	marker string
}

// marked lists the living processes of this host that carry the marker, any marker when it is
// empty. This process and its ancestors are never among them.
func (l *Local) marked(ctx context.Context, all map[int]procStat, marker string) []candidate {
	line := lineage(all)
	var list []candidate
	var blank []procStat      // those that erased their environment
	owner := map[int]string{} // session → marker of one of its members
	for pid, s := range all {
		if line[pid] || s.gone() || s.flags&kernelThread != 0 {
			continue
		}
		env := readEnviron(ctx, pid)
		if m, ok := envValue(env, MarkerEnv); ok {
			sim, _ := envValue(env, simulatedEnv)
			if sim == l.simulated && (marker == "" || m == marker) {
				list = append(list, candidate{s, m})
				owner[s.session] = m
			}
		} else if erased(env) {
			blank = append(blank, s)
		}
	}
	// Without SPT_NOENV a renamed server process has no marker left to read; a sister in its
	// session (Python's resource_tracker is never renamed) still has.
	for _, s := range blank {
		if m, ok := owner[s.session]; ok {
			list = append(list, candidate{s, m})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int { // oldest first
		return cmp.Or(cmp.Compare(a.startTicks, b.startTicks), cmp.Compare(a.pid, b.pid))
	})
	return list
}

// found is a process that an earlier sgtune started.
type found struct {
	host  *Local
	id    ID
	watch sync.Once
	done  chan struct{}
	at    time.Time // when it was seen gone; valid once done is closed
}

// ID is the identity read when it was found.
func (f *found) ID() ID { return f.id }

// Log is empty: where a found process writes to is not known.
func (f *found) Log(ctx context.Context, _ int64, _ int) ([]byte, error) { return nil, ctx.Err() }

// Done is closed once the process is gone. The first call starts the watch, which ends with the
// process; its reader is whoever asked for the channel.
func (f *found) Done() <-chan struct{} {
	f.watch.Do(func() {
		go func() {
			defer close(f.done)
			for {
				if _, ok := alive(f.id, f.host.boot); !ok {
					f.at = f.host.clock.Now()
					return
				}
				pause(context.Background(), lastPoll)
			}
		}()
	})
	return f.done
}

// Exit has Known false: only a parent can read an exit status.
func (f *found) Exit() Exit {
	select {
	case <-f.done:
		return Exit{Code: -1, At: f.at}
	default:
		return Exit{}
	}
}

// Stop ends this one process; see Process. If its identity no longer holds it is gone already.
func (f *found) Stop(ctx context.Context, grace time.Duration) error {
	if s, ok := alive(f.id, f.host.boot); ok {
		f.host.note([]candidate{{s, f.id.Marker}})
	}
	if grace > 0 && ctx.Err() == nil {
		if err := f.terminate(ctx, grace); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("pid %d (%s=%s)", f.id.PID, MarkerEnv, f.id.Marker)
	return end(ctx, what, func(context.Context) ([]procStat, error) {
		if s, ok := alive(f.id, f.host.boot); ok {
			return []procStat{s}, nil
		}
		return nil, nil
	})
}

func (f *found) terminate(ctx context.Context, grace time.Duration) error {
	if err := signal(f.id.PID, f.id.StartTicks, syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.host.grace(grace))
	defer cancel()
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		if _, ok := alive(f.id, f.host.boot); !ok || !pause(ctx, wait) {
			return nil
		}
	}
}

// commandName is the short name of a process, "" when it cannot be read.
func commandName(pid int) string {
	b, err := os.ReadFile(procPath(pid, "comm"))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}
