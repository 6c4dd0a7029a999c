package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Memory is taken in pieces of huge pages, each by one call of the kernel.
const (
	piece     = 10 << 21
	eaterRate = 1.1e9 // bytes a second that the greedy server takes, so that it is 1 GB/s with its start
	lead      = 50 * time.Millisecond
)

// Values of the kernel that package syscall has no names for.
const (
	adviseHuge     = 14 // MADV_HUGEPAGE
	advisePopulate = 23 // MADV_POPULATE_WRITE, Linux 5.14
)

// init plays the greedy server before any test starts: it waits for its standard input to end, so that it can be
// put into its cgroup first, and takes 6 GB at eaterRate. What it missed while the machine was busy it takes at once.
func init() {
	if os.Getenv(guardEaterEnv) == "" {
		return
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	memory, err := reserve(300)
	if err == nil {
		take(memory, paced(time.Now()))
		err = errors.New("it took all it wanted and was not killed")
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(5)
}

// reserve maps memory for so many pieces without taking it.
func reserve(pieces int) ([]byte, error) {
	memory, err := syscall.Mmap(-1, 0, pieces*piece, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	_ = syscall.Madvise(memory, adviseHuge) // refused where the kernel has none
	return memory, nil
}

// paced tells how long to wait for the next piece: those before it are due at eaterRate.
func paced(start time.Time) func(i int) time.Duration {
	return func(i int) time.Duration {
		return time.Until(start.Add(time.Duration(float64(i*piece) / eaterRate * float64(time.Second))))
	}
}

// take takes the memory piece by piece, each when it is due; in many threads, so that a machine that is busy
// with other work is fast enough, too.
func take(memory []byte, due func(i int) time.Duration) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if (i+1)*piece > len(memory) {
					return
				}
				time.Sleep(due(i))
				part := memory[i*piece : (i+1)*piece]
				if syscall.Madvise(part, advisePopulate) == nil {
					continue
				}
				for at := 0; at < piece; at += os.Getpagesize() {
					part[at] = 1
				}
			}
		})
	}
	all.Wait()
}

// stock holds memory and gives it back at the rate at which the greedy server takes its own. In a virtual machine whose
// unused memory goes back to its host, fresh pages come at 0.1 to 0.6 GB/s; those that were just given back are
// taken at several GB/s.
type stock struct {
	memory []byte
}

func newStock(t *testing.T) *stock {
	t.Helper()
	memory, err := reserve(150)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	s := &stock{memory}
	s.fill()
	return s
}

// fill takes what is missing.
func (s *stock) fill() { take(s.memory, func(int) time.Duration { return 0 }) }

// give gives pages back, a moment before a server that begins now asks for them, until the returned function is
// called; that fills the stock again with what the server has left.
func (s *stock) give(ctx context.Context, start time.Time) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		due := paced(start.Add(-lead))
		for i := 0; (i+1)*piece <= len(s.memory); i++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(due(i)):
			}
			_ = syscall.Madvise(s.memory[i*piece:(i+1)*piece], syscall.MADV_DONTNEED) // then the server gets others
		}
	}()
	return func() { cancel(); <-done; s.fill() }
}
