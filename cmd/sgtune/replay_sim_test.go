package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sgtune/internal/freeport"
)

// simserver NAME [sim-server flags...]: starts a simulated server for the rest of the script, waits until it is
// ready and puts its address into the variable NAME.
func simServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: simserver NAME [flags...]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	number, release, err := freeport.Take()
	ts.Check(err)
	ts.Defer(release)
	port := strconv.Itoa(number)
	log, err := os.Create(ts.MkAbs("server.log"))
	ts.Check(err)
	self, err := os.Executable()
	ts.Check(err)
	server := exec.Command(self, append([]string{"sim-server", "--model-path", "any", "--host", "127.0.0.1", "--port", port}, args[1:]...)...)
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ts.Check(server.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Wait() // its log says more
	}()
	ts.Defer(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL) // our own group
		<-ended
		_ = log.Close()
	})
	url := "http://127.0.0.1:" + port
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", http.NoBody)
		ts.Check(err)
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close() // its status is all
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("the simulated server is not ready: %v\n%s", err, ts.ReadFile("server.log"))
		case <-ended:
			ts.Fatalf("the simulated server ended:\n%s", ts.ReadFile("server.log"))
		case <-time.After(10 * time.Millisecond):
		}
	}
	ts.Setenv(args[0], url)
	fmt.Fprintln(ts.Stdout(), url)
}
