package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	helloTime    = 30 * time.Second // for a started agent to say hello
	pingInterval = 5 * time.Second
	linkSilence  = 20 * time.Second // without a word from the agent the connection counts as dead
	mostChatter  = 64 << 10         // bytes of what a remote shell prints before the agent's first line
)

// errDropped is why requests of a dead connection have no answer.
var errDropped = errors.New("the connection was lost")

// session is one connection to a serving agent.
type session struct {
	conn  *LinkConn
	hello serveHello

	write   sync.Mutex // for conn.In
	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan response
	heard   atomic.Int64  // real time of the last line, ns
	hear    func()        // called for each line
	dead    chan struct{} // closed when there are no more answers
	ends    sync.WaitGroup
}

// openSession connects and waits for the agent's hello. hear is called whenever something was heard.
func openSession(ctx context.Context, l Link, hear func()) (*session, error) {
	conn, err := l.Open(ctx, "serve")
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, waiting: map[uint64]chan response{}, dead: make(chan struct{}), hear: hear}
	hello, cancel := context.WithTimeoutCause(ctx, helloTime, fmt.Errorf("the agent did not answer within %s", helloTime))
	defer cancel()
	stop := context.AfterFunc(hello, func() { _ = conn.Close() })
	err = s.greet(conn.Out)
	if !stop() && err == nil {
		err = context.Cause(hello)
	}
	if err != nil {
		if cause := context.Cause(hello); cause != nil {
			err = cause
		}
		_ = conn.Close()
		if told := lastLine(conn.Messages()); told != "" {
			err = fmt.Errorf("%w: %s", err, told)
		}
		return nil, &LinkError{Host: l.String(), Text: err.Error()}
	}
	s.heard.Store(time.Now().UnixNano())
	hear()
	s.ends.Go(s.read)
	s.ends.Go(s.ping)
	s.ends.Go(s.watch)
	return s, nil
}

// greet reads up to the hello.
func (s *session) greet(r *bufio.Reader) error {
	for chatter := 0; chatter < mostChatter; {
		line, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("the agent ended before it said hello: %w", err)
		}
		chatter += len(line)
		if json.Unmarshal(line, &s.hello) != nil || s.hello.Program != serveProgram {
			continue
		}
		if s.hello.Protocol != ServeProtocol {
			return fmt.Errorf("the agent speaks protocol %d and this sgtune %d: remove it there, it is copied anew", s.hello.Protocol, ServeProtocol)
		}
		return nil
	}
	return errors.New("no agent was heard, only other output")
}

// close ends the connection and waits for its goroutines.
func (s *session) close() {
	_ = s.conn.Close()
	s.ends.Wait()
}

func (s *session) isDead() bool {
	select {
	case <-s.dead:
		return true
	default:
		return false
	}
}

// read hands out answers until there are no more.
func (s *session) read() {
	defer close(s.dead)
	defer func() { _ = s.conn.Close() }()
	dec := json.NewDecoder(s.conn.Out)
	for {
		var r response
		if dec.Decode(&r) != nil {
			return
		}
		s.heard.Store(time.Now().UnixNano())
		s.hear()
		s.mu.Lock()
		to := s.waiting[r.ID]
		delete(s.waiting, r.ID)
		s.mu.Unlock()
		if to != nil {
			to <- r // has room for one
		}
	}
}

// ping keeps both sides sure of each other: a dead network says nothing by itself.
func (s *session) ping() {
	t := time.NewTicker(pingInterval)
	defer t.Stop()
	for {
		select {
		case <-s.dead:
			return
		case <-t.C:
			_, _, _ = s.ask("ping", struct{}{}) // the answer is noted by read, its absence by watch
		}
	}
}

// watch ends a connection over which nothing comes any more. It writes nothing itself, so that a full pipe
// cannot hold it up.
func (s *session) watch() {
	t := time.NewTicker(pingInterval)
	defer t.Stop()
	for {
		select {
		case <-s.dead:
			return
		case <-t.C:
			if time.Since(time.Unix(0, s.heard.Load())) > linkSilence {
				_ = s.conn.Close()
				return
			}
		}
	}
}

// ask sends a request; its answer comes on the channel.
func (s *session) ask(op string, args any) (uint64, chan response, error) {
	b, err := json.Marshal(args)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", op, err)
	}
	r := request{Op: op, Args: b}
	answer := make(chan response, 1)
	s.mu.Lock()
	s.next++
	r.ID = s.next
	s.waiting[r.ID] = answer
	s.mu.Unlock()
	return r.ID, answer, s.send(r)
}

func (s *session) send(r request) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	if _, err := s.conn.In.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("%w: %w", errDropped, err)
	}
	return nil
}

// await waits for an answer.
func (s *session) await(ctx context.Context, id uint64, answer chan response) (response, error) {
	select {
	case r := <-answer:
		return r, nil
	case <-s.dead:
		select {
		case r := <-answer: // it was the last one
			return r, nil
		default:
			return response{}, errDropped
		}
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.waiting, id)
		s.mu.Unlock()
		return response{}, context.Cause(ctx)
	}
}

// cancel asks the agent to end a request early; it still answers.
func (s *session) cancel(id uint64) {
	_ = s.send(request{Op: "cancel", Args: json.RawMessage(fmt.Sprint(id))}) // in vain if the connection is dead
}
