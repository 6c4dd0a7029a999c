package benchmark

import (
	"context"
	"crypto/tls"
	"errors"
	"syscall"
	"time"
)

// What happens to a connection between two answers, and in the middle of one.

// idle reports whether the connection may carry another request: its answer was read to its end, and nothing
// came behind it.
func (c *conn) idle() bool { return c.reusable && c.finished && c.start == c.end }

// hungUp reports whether the server has closed an idle connection, or said something nobody asked for.
func (c *conn) hungUp() bool {
	under := c.net
	if secure, ok := under.(*tls.Conn); ok {
		under = secure.NetConn()
	}
	raw, ok := under.(syscall.Conn)
	if !ok {
		return false
	}
	access, err := raw.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = access.Read(func(fd uintptr) bool {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		// A TLS connection may hold a session ticket that nobody has read yet.
		_, secure := c.net.(*tls.Conn)
		gone = n == 0 && err == nil || n > 0 && !secure || err != nil && !errors.Is(err, syscall.EAGAIN)
		return true
	})
	return gone || err != nil
}

// tellsHangUp reports whether hungUp sees every hang-up that has arrived: through TLS and tunnels it does not.
func (c *conn) tellsHangUp() bool {
	_, plain := c.net.(syscall.Conn)
	return plain
}

// interruptible makes a read or write of the connection end when ctx does; stop undoes it and reports whether
// the connection is still good for another request.
func (c *conn) interruptible(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.net.SetDeadline(time.Unix(1, 0)) }) // closed already: nothing to interrupt
}
