package webspeed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sgtune/internal/freeport"
	"sgtune/store"
	"sgtune/test/webbed"
	"sgtune/trial"
)

// bed is what both products are started from.
type bed struct {
	program string // the built sgtune
	venv    string // with optuna-dashboard
	dir     string // for databases and profiles of browsers
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{venv: os.Getenv("SGTUNE_PEER"), dir: t.TempDir()}
	if b.venv == "" {
		t.Skip("needs optuna-dashboard, chromium and a quarter of an hour: make test-webspeed")
	}
	b.program = filepath.Join(b.dir, "sgtune")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", b.program, "sgtune/cmd/sgtune").CombinedOutput(); err != nil {
		t.Fatalf("build sgtune: %v\n%s", err, out)
	}
	return b
}

// night is a night of n search trials; with the baseline and the confirmation it has some more.
func night(n int) webbed.Night { return webbed.Make("night", n, 7) }

// ours is a database of ours with a night.
func (b *bed) ours(t *testing.T, name string, n webbed.Night) string {
	t.Helper()
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sgtune.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := webbed.Fill(t.Context(), db, n); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// windows is how many throughput figures of a trial the peer gets as intermediate values.
const windows = 10

// peerTrial is a line of what fill.py reads.
type peerTrial struct {
	Number int            `json:"number"`
	State  trial.State    `json:"state"`
	Value  *float64       `json:"value"`
	Start  int64          `json:"start"`
	End    int64          `json:"end"`
	Knobs  map[string]any `json:"knobs"`
	Series []float64      `json:"series"`
	Facts  map[string]any `json:"facts"`
}

func newPeerTrial(t *trial.Trial) peerTrial {
	p := peerTrial{Number: t.Number, State: "fail", Start: t.StartedAt.Unix(), End: t.EndedAt.Unix(), Knobs: t.Config, Series: []float64{}}
	p.Facts = map[string]any{
		"outcome": t.Verdict.Outcome, "phase": t.Verdict.Phase, "kv_tokens": t.Memory.Tokens, "gpu_free_min_gb": nil, "ttft_p95_s": nil,
		"cache_hit": nil, "startup_min": t.Startup.Minutes(), "evidence": t.Verdict.Evidence,
	}
	if t.State == trial.Complete || t.State == trial.Pruned {
		p.State, p.Value = t.State, t.Value
	}
	if len(t.Levels) > 0 {
		r := t.Levels[len(t.Levels)-1].Report
		for i := range windows {
			p.Series = append(p.Series, r.Series[i*len(r.Series)/windows].OutputTokS)
		}
		p.Facts["ttft_p95_s"], p.Facts["cache_hit"] = r.TTFTms.P95/1000, r.CacheHitRatio
	}
	if t.LowWater > 0 {
		p.Facts["gpu_free_min_gb"] = float64(t.LowWater) / 1e9
	}
	return p
}

// peers is the peer's database with the same night. A long one takes minutes to fill, so it is kept beside the peer,
// under a name that changes with what is in it.
func (b *bed) peers(t *testing.T, n webbed.Night) string {
	t.Helper()
	var lines bytes.Buffer
	out := json.NewEncoder(&lines)
	for _, each := range n.Trials {
		if err := out.Encode(newPeerTrial(each)); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile("fill.py")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(b.venv, "nights")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(append(script, lines.Bytes()...))
	path := filepath.Join(dir, fmt.Sprintf("%d-%x.db", len(n.Trials), sum[:6]))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.RemoveAll(path + ".part"); err != nil { // of a run that was ended
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(b.venv, "bin", "python"), "fill.py", path)
	cmd.Stdin = &lines
	begin := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fill the peer's database: %v\n%s", err, out)
	}
	t.Logf("filling the peer's database took %.0f s; it is kept", time.Since(begin).Seconds())
	return path
}

// server is a running product.
type server struct {
	url  string
	pid  int
	stop func()
}

// serve starts a product and waits until it answers; {port} among the arguments is its port.
func serve(t *testing.T, program string, args ...string) server {
	t.Helper()
	port := strconv.Itoa(freeport.For(t))
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "{port}", port)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	s := server{url: "http://127.0.0.1:" + port, pid: cmd.Process.Pid}
	s.stop = func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}
	t.Cleanup(s.stop)
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, _, err := fetch(ctx, s.url+"/", io.Discard)
		if err == nil {
			return s
		}
		if time.Since(begin) > time.Minute {
			s.stop()
			t.Fatalf("%s does not answer: %v\n%s", filepath.Base(program), err, said.String())
		}
	}
}

func (b *bed) serveOurs(t *testing.T, db string) server {
	t.Helper()
	return serve(t, b.program, "serve", "--db", db, "--web", "127.0.0.1:{port}")
}

func (b *bed) servePeer(t *testing.T, db string) server {
	t.Helper()
	return serve(t, filepath.Join(b.venv, "bin", "optuna-dashboard"), "sqlite:///"+db, "--host", "127.0.0.1", "--port", "{port}")
}

// fetch reads an answer to its end and says how many bytes of content it had and how long that took.
func fetch(ctx context.Context, url string, into io.Writer) (size int64, took time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = w.Body.Close() }() // all of it was read, or that has failed
	size, err = io.Copy(into, w.Body)
	if err == nil && w.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d", url, w.StatusCode)
	}
	return size, time.Since(begin), err
}

// memory is a figure of a server's memory in bytes: VmRSS, what it holds now, or VmHWM, the most it ever held.
func (s server) memory(t *testing.T, figure string) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(status), figure+":")
	fields := strings.Fields(rest)
	if !found || len(fields) < 2 {
		t.Fatalf("no %s of process %d", figure, s.pid)
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib * 1024
}
