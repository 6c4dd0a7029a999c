package trial

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sgtune/host"
)

// Limits of the removal of files, in host time and at least in real time: who is about to end may still use them.
const (
	filesTime     = 10 * time.Second
	filesTimeReal = 2 * time.Second
)

// tidier is a host that knows which files of a server outlive it.
type tidier interface {
	// RemoveRemains removes the shared memory and the sockets that dead processes of a marker left. Those that are
	// still there say why.
	RemoveRemains(ctx context.Context, marker string) ([]host.RemainsOf, error)
}

// filesGone removes the shared memory and the sockets of the launch. It returns which shared memory is left, and why: that
// is memory held. A socket that nobody listens on holds nothing.
func (p premises) filesGone(ctx context.Context) string {
	h, ok := p.host.(tidier)
	if !ok {
		return ""
	}
	limit := p.clock.Now().Add(floor(p.clock, filesTime, filesTimeReal))
	for {
		list, err := h.RemoveRemains(ctx, p.marker)
		left := sharedMemory(list)
		if left == "" && err == nil {
			return ""
		}
		if p.clock.Now().After(limit) || p.clock.Sleep(ctx, floor(p.clock, cleanPoll, cleanPollReal)) != nil {
			return left // "" after an error: what cannot be looked for is no proof of dirt
		}
	}
}

// sharedMemory names the shared memory that is still there.
func sharedMemory(list []host.RemainsOf) string {
	var left []string
	for _, f := range list {
		if f.Memory() && f.Why != "" {
			left = append(left, fmt.Sprintf("shared memory %s (%s) of the server is still there: %s", f.Path, gib(f.Bytes), f.Why))
		}
	}
	return strings.Join(left, "; ")
}
