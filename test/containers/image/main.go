package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"sgtune/internal/simulator"
)

// eatEnv has a server take so many MB of memory soon after its start.
const eatEnv = "EAT_MB"

// lifetime ends what a broken test has left behind.
const lifetime = 2 * time.Minute

func main() {
	word, number := "", 0
	if len(os.Args) > 1 {
		word = os.Args[1]
	}
	if len(os.Args) > 2 {
		number, _ = strconv.Atoi(os.Args[2]) // 0 where it is no number
	}
	switch word {
	case "sim-server":
		if mb, err := strconv.Atoi(os.Getenv(eatEnv)); err == nil && mb > 0 {
			go func() { time.Sleep(time.Second); eat(mb) }()
		}
		os.Exit(simulator.Main(context.Background(), os.Args[2:], os.Stdout))
	case "exit":
		os.Exit(number)
	case "lines": // so many, on both streams in turn
		for i := range number {
			fmt.Fprintln([]*os.File{os.Stdout, os.Stderr}[i%2], "line", i)
			if i%50 == 0 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		fmt.Print("the rest has no line break")
	case "polite": // ends with status 5 when it is asked to
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("ready")
		select {
		case <-asked:
			fmt.Println("bye")
			os.Exit(5)
		case <-time.After(lifetime):
		}
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(lifetime)
	case "eat": // takes memory, so many MB and 10 MB at a time
		eat(number)
	default:
		fmt.Fprintln(os.Stderr, "usage: sim sim-server|exit|lines|polite|stubborn|eat ...")
		os.Exit(2)
	}
}

// eat takes memory, so many MB, and keeps it.
func eat(mb int) {
	var all [][]byte
	for range mb / 10 {
		b := make([]byte, 10<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Println("ate", len(all))
	time.Sleep(lifetime)
	runtime.KeepAlive(all)
}
