package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// DefaultAddr is where the page is served unless told otherwise.
const DefaultAddr = "127.0.0.1:8090"

// portTries is how many ports from the wanted one on are tried.
const portTries = 100

// Serve listens on addr ("" = DefaultAddr), on the next free port if that one is taken, and serves
// handler until ctx ends. actual is the address in use. wait returns once everything has ended;
// it must be called. An address that other machines can reach needs a Handler with a token.
func Serve(ctx context.Context, addr string, handler http.Handler) (actual string, wait func() error, err error) {
	if addr == "" {
		addr = DefaultAddr
	}
	pages, ours := handler.(*Handler)
	listener, err := listen(ctx, addr, ours && pages.opts.Token != "")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, // ends live pages, too
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	wait = func() error {
		var err error
		select {
		case err = <-done:
		case <-ctx.Done():
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			if server.Shutdown(grace) != nil {
				_ = server.Close() // whoever still reads is cut off
			}
			err = <-done
		}
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("serve the page on %s: %w", listener.Addr(), err)
	}
	return listener.Addr().String(), wait, nil
}

// listen finds a port.
func listen(ctx context.Context, addr string, token bool) (net.Listener, error) {
	host, portText, err := net.SplitHostPort(addr)
	port, notNumber := strconv.Atoi(portText)
	if err != nil || notNumber != nil || port < 0 || port > 65535 {
		return nil, fmt.Errorf("%q is not an address for the page; write one like %s", addr, DefaultAddr)
	}
	if !loopback(host) && !token {
		return nil, fmt.Errorf("other machines can reach %s: set the environment variable SGTUNE_TOKEN to a secret first, or use %s", addr, DefaultAddr)
	}
	var config net.ListenConfig
	for try := range portTries {
		listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port+try)))
		if err == nil {
			return listener, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) || port+try == 65535 {
			return nil, fmt.Errorf("serve the page on %s: %w; choose another address with --web", addr, err)
		}
	}
	return nil, fmt.Errorf("serve the page: the ports %d to %d of %s are all taken; choose another address with --web", port, port+portTries-1, host)
}

// loopback reports whether only this machine can reach a host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
