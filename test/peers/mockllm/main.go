package main

import (
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var (
	addr     = flag.String("addr", "127.0.0.1:18080", "listen address")
	tokens   = flag.Int("tokens", 128, "output tokens when the request names none")
	itl      = flag.Duration("itl", 0, "time between tokens")
	ttft     = flag.Duration("ttft", 0, "time to the first token")
	flushN   = flag.Int("flush", 1, "tokens per write (only when itl is 0)")
	perChunk = flag.Int("per-chunk", 1, "tokens carried by one SSE event (server coalescing / speculative decode)")
	cumul    = flag.Bool("cumulative", true, "/generate sends the whole text so far, as SGLang does by default")
	step     = flag.Bool("step", false, "align token times to a global step clock, as a batched engine does")
	model    = flag.String("model", "mock", "model name")
	failEach = flag.Int("fail-every", 0, "answer every n-th generation request with 500")
	cutEach  = flag.Int("cut-every", 0, "cut every n-th stream in the middle")
	stall    = flag.Duration("stall", 0, "one stall of this length, begun -stall-at after the first request")
	stallAt  = flag.Duration("stall-at", 5*time.Second, "when the stall begins")
)

func main() {
	flag.Parse()
	var rl syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &rl) == nil {
		rl.Cur = rl.Max
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &rl)
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("mockllm on %s tokens=%d itl=%v ttft=%v flush=%d", l.Addr(), *tokens, *itl, *ttft, *flushN)
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGTERM, os.Interrupt)
	go func() { <-sig; os.Stdout.Write(statsJSON()); os.Exit(0) }()
	for {
		c, err := l.Accept()
		if err != nil {
			log.Print(err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go serve(c)
	}
}
