package hosttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

const (
	portBlock = 10 // ports that Ports gives
	portHeld  = 8  // the one of them that nobody else uses
)

// Ports finds ten free neighbours on the loopback for the servers of a testbed, from a number on that lies below those of
// connections, and returns the first. The ninth is taken until free is called, so that a run beside this one chooses
// others, also while the servers are stopped; the tenth stays without a server.
func Ports(from int) (port int, free func(), err error) {
	for range 1000 {
		port := from + rand.IntN(200)*portBlock
		if held, err := claim(port); err == nil {
			return port, func() { _ = held.Close() }, nil
		}
	}
	return 0, func() {}, fmt.Errorf("no ten free ports above %d", from)
}

// claim takes a block of ports, if all of them are free.
func claim(port int) (held net.Listener, err error) {
	if held, err = listen(port + portHeld); err != nil {
		return nil, err
	}
	for p := port; p < port+portBlock; p++ {
		if p == port+portHeld {
			continue
		}
		ln, err := listen(p)
		if err != nil {
			return nil, errors.Join(err, held.Close())
		}
		if err := ln.Close(); err != nil {
			return nil, errors.Join(err, held.Close())
		}
	}
	return held, nil
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}
