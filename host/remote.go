package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	remotePatience = 10 * time.Minute
	undoTime       = 15 * time.Second // to take back a start
)

// RemoteOptions are the settings of a Remote host. Link is needed.
type RemoteOptions struct {
	Link Link
	// Patience is how long a dropped link may last: so long a request is repeated, and so long the host keeps our
	// lease for us. 0 = 10 min.
	Patience time.Duration
	Clock    *Clock // nil = real time
}

// Remote is a machine that is reached over a Link: a Local there, served by sgtune-agent (Serve). A request whose
// answer is lost with the link is repeated over a new one; each of them can be (a start carries a key). Before the
// first connection has succeeded nothing is repeated: a wrong address should be told at once.
type Remote struct {
	link     Link
	patience time.Duration
	clock    *Clock

	mu      sync.Mutex
	dialled *dial // the present connection, or the attempt at one; nil before the first
	reached bool  // there has been one
	closed  bool
	ending  map[*context.CancelFunc]struct{} // of what runs until Close
	lease   string                           // token of the lease we hold, "" = none
	heard   time.Time                        // when the machine was last heard, zero before
	givenUp bool
	joined  map[*Remote]struct{}                  // machines that are reached through this one
	asking  map[*context.CancelCauseFunc]struct{} // of requests under way
	ends    sync.WaitGroup
}

var _ Host = (*Remote)(nil)

// NewRemote returns the machine at the other end of a link. Nothing is connected yet.
func NewRemote(opts RemoteOptions) *Remote {
	r := &Remote{
		link: opts.Link, patience: opts.Patience, clock: opts.Clock,
		ending: map[*context.CancelFunc]struct{}{}, asking: map[*context.CancelCauseFunc]struct{}{},
	}
	if r.patience <= 0 {
		r.patience = remotePatience
	}
	if r.clock == nil {
		r.clock = NewClock(time.Now(), 1)
	}
	return r
}

// String names the machine.
func (r *Remote) String() string { return r.link.String() }

// Close ends the connection, and waits for what runs here. On the machine nothing ends; Done of its processes
// will not be closed any more.
func (r *Remote) Close() error {
	r.mu.Lock()
	r.closed = true
	for cancel := range r.ending {
		(*cancel)()
	}
	d := r.dialled
	r.mu.Unlock()
	r.ends.Wait()
	if d != nil && d.session != nil {
		d.session.close()
	}
	return r.link.Close()
}

// errClosed is the cause of what Close ends.
var errClosed = errors.New("the link was closed")

// background runs f until it is done or Close ends its context. After Close it does nothing and returns false.
func (r *Remote) background(f func(context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.backgroundLocked(f)
	return true
}

// backgroundLocked is background for who holds mu and has looked at closed.
func (r *Remote) backgroundLocked(f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	r.ending[&cancel] = struct{}{}
	r.ends.Go(func() {
		f(ctx)
		r.mu.Lock()
		delete(r.ending, &cancel)
		r.mu.Unlock()
		cancel()
	})
}

// Start starts c on the machine; see Host. The log lies there; what Log reads of it is also copied to c.LogPath here.
func (r *Remote) Start(ctx context.Context, c Command) (Process, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, errors.New("start: no command given")
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p := &remoteProcess{remote: r, done: make(chan struct{}), logPath: c.LogPath}
	if c.LogPath != "" {
		log, size, err := openLog(c.LogPath)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
		}
		if err := log.Close(); err != nil {
			return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
		}
		p.copyBase = size
	}
	r.mu.Lock()
	args := startArgs{Run: newToken(), Lease: r.lease, Command: packCommand(c)}
	r.mu.Unlock()
	me := self()
	args.Command.Client = &me
	err := r.call(ctx, "start", args, &p.ref)
	if err == nil {
		return p, nil
	}
	if ctx.Err() != nil { // it may have been started
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		if left := r.call(last, "undo", processRef{Run: args.Run}, &struct{}{}); left != nil {
			err = fmt.Errorf("%w; whether it was started is not known: %w", err, left)
		}
	}
	var refused *wireError
	if ctx.Err() == nil && errors.As(err, &refused) && refused.Kind == "" { // it was not started: nobody asks for its folder again
		_ = r.call(ctx, "forget", processRef{Run: args.Run}, &struct{}{}) // if it stays, it is tidied away later
	}
	return nil, r.told("", err)
}

// Find lists the marked processes; see Host. Those that a Remote started have their log, and their status.
func (r *Remote) Find(ctx context.Context, marker string) ([]Process, error) {
	var refs []processRef
	if err := r.call(ctx, "find", markerArgs{Marker: marker}, &refs); err != nil {
		return nil, r.told("find processes", err)
	}
	list := make([]Process, len(refs))
	for i, ref := range refs {
		list[i] = &remoteProcess{remote: r, ref: ref, done: make(chan struct{})}
	}
	return list, nil
}

// Attach returns the process with this identity, also when it has ended since: its status and log are kept on
// the machine. The error wraps ErrNoProcess when nothing is known of it.
func (r *Remote) Attach(ctx context.Context, id ID) (Process, error) {
	p := &remoteProcess{remote: r, done: make(chan struct{})}
	if err := r.call(ctx, "attach", id, &p.ref); err != nil {
		return nil, r.told(fmt.Sprintf("attach to pid %d", id.PID), err)
	}
	return p, nil
}

// Usage reads what the machine uses; see Host.
func (r *Remote) Usage(ctx context.Context) (Usage, error) {
	var u Usage
	if err := r.call(ctx, "usage", struct{}{}, &u); err != nil {
		return Usage{}, r.told("read usage", err)
	}
	return u, nil
}

// Reach tells how to talk to a port of the machine; see Host.
func (r *Remote) Reach(ctx context.Context, port int) (Endpoint, error) {
	var e wireEndpoint
	if err := r.call(ctx, "reach", portArgs{Port: port}, &e); err != nil {
		return Endpoint{}, r.told("", err)
	}
	return Endpoint{Port: e.Port, URL: e.URL, Listening: e.Listening, Owners: e.Owners, Dial: r.link.Dialer(e.Port)}, nil
}

// Clean removes what ended commands left in the work folder of the machine (logs and statuses), and copied files; with
// program the agent, too, and the folder, if nothing runs there any more. It returns how many commands. The caller holds the
// lease: somebody else may be using the files.
func (r *Remote) Clean(ctx context.Context, program bool) (int, error) {
	var n int
	if err := r.call(ctx, "clean", cleanArgs{Program: program}, &n); err != nil {
		return 0, r.told("clean up", err)
	}
	return n, nil
}

// RoundTrip is the time that a question and its answer take, seconds of real time: the quickest of three.
func (r *Remote) RoundTrip(ctx context.Context) (time.Duration, error) {
	least := time.Duration(0)
	for range 3 {
		begin := time.Now()
		if err := r.call(ctx, "ping", struct{}{}, &struct{}{}); err != nil {
			return 0, r.told("", err)
		}
		if d := time.Since(begin); least == 0 || d < least {
			least = d
		}
	}
	return least, nil
}

// Open starts the agent on the machine for another purpose, as "replay". The caller closes what it gets.
func (r *Remote) Open(ctx context.Context, word string) (*LinkConn, error) {
	return r.link.Open(ctx, word)
}
