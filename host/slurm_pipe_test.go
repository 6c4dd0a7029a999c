package host_test

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"sgtune/host"
)

// A pipe carries both ways, and the end of our input on to the other side.
func TestPipe(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1)
	go func() {
		defer close(heard)
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b, _ := io.ReadAll(conn)
		heard <- string(b)
		_, _ = conn.Write([]byte("answer"))
	}()
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	var out bytes.Buffer
	if err := host.PipeMain(t.Context(), port, strings.NewReader("question"), &out); err != nil || out.String() != "answer" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if got := <-heard; got != "question" {
		t.Errorf("arrived: %q", got)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := host.PipeMain(t.Context(), port, strings.NewReader(""), io.Discard); err == nil {
		t.Error("nobody listens")
	}
}
