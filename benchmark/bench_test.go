package benchmark_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/benchmark"
)

// The benchmark's server is another process, so that this one's CPU is the client's alone: the test
// binary itself, started again with this variable set.
const serverEnv = "SGTUNE_BENCHMARK_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		serveInstantly()
		return
	}
	os.Exit(m.Run())
}

// serveInstantly answers every request in four events at once, until standard input ends.
func serveInstantly() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, n := range []int{1, 15, 29, 43} {
			ids := strings.TrimSuffix(strings.Repeat("12345,", n), ",")
			fmt.Fprintf(w, `data: {"output_ids":[%s],"meta_info":{"finish_reason":null,"prompt_tokens":1755,"cached_tokens":400,"completion_tokens":%d}}`+"\n\n", ids, n)
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	server.Close()
}

// BenchmarkRun replays the quickstart's rows as fast as another process answers them. requests/core-s
// is what one core of client CPU carries.
func BenchmarkRun(b *testing.B) {
	w, err := benchmark.ReadWorkload("../examples/quickstart.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	var rows []benchmark.Row
	for _, r := range w.All() {
		r.OutputTokens = 43
		rows = append(rows, r)
	}
	w = benchmark.NewWorkload(rows, w.BlockTokens)
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), serverEnv+"=1")
	stdin, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		_ = command.Wait()
	}()
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	palette := benchmark.WordPalette("")
	palette.Approximate = false
	for i := range palette.Words {
		palette.IDs = append(palette.IDs, 10_000+7*i)
	}
	feed := benchmark.NewFeed(w, 0, w.Len(), "bench", palette)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	r, err := benchmark.Run(b.Context(), benchmark.Target{URL: strings.TrimSpace(url)}, feed,
		benchmark.Options{Concurrency: 48, Requests: b.N}, nil)
	used := cpuTime() - before
	b.StopTimer()
	if err != nil || r.Requests.OK+r.Warmup != b.N {
		b.Fatalf("%v: %+v %v", err, r.Requests, r.Errors)
	}
	b.ReportMetric(float64(b.N)/used.Seconds(), "requests/core-s")
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/op")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkFeed(b *testing.B) {
	var rows []benchmark.Row
	for i := range 100 {
		row := benchmark.Row{Number: i, InputTokens: 1755, OutputTokens: 43}
		for k := range 28 {
			row.HashIDs = append(row.HashIDs, int64(100*i+k))
		}
		rows = append(rows, row)
	}
	w := benchmark.NewWorkload(rows, 64)
	feed := benchmark.NewFeed(w, 0, 100, "", testPalette())
	b.ReportAllocs()
	for b.Loop() {
		feed.Next()
	}
}

func BenchmarkDistribute(b *testing.B) {
	samples := make([]float64, 20_000)
	for i := range samples {
		samples[i], _ = strconv.ParseFloat(fmt.Sprintf("0.%d", i*7919%100_003), 64)
	}
	for b.Loop() {
		benchmark.Distribute(samples)
	}
}
