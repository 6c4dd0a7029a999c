package simulator

import (
	"math/rand/v2"
	"testing"
)

func ids(from, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(from + i)
	}
	return out
}

func TestPromptHash(t *testing.T) {
	t.Parallel()
	a, b := NewPrompt(ids(0, 200)), NewPrompt(append(ids(0, 130), 9, 9, 9))
	if len(a.Blocks) != 3 || a.Rest != 8 || a.Len != 200 {
		t.Fatalf("blocks %d rest %d", len(a.Blocks), a.Rest)
	}
	if a.Blocks[1] != b.Blocks[1] || a.Tail == b.Tail {
		t.Error("a shared prefix must share blocks, different ends must differ")
	}
	if c := NewPrompt(append([]uint32{7}, ids(1, 199)...)); c.Blocks[1] == a.Blocks[1] {
		t.Error("a block's hash must cover what is before it")
	}
	// An answer continues the chain: prompt and answer as one prompt have the same blocks.
	all := ids(0, 200)
	for i := range 100 {
		all = append(all, a.OutputID(i))
	}
	whole, tail := NewPrompt(all), a.outputBlocks(100)
	if len(tail) != 1 || tail[0] != whole.Blocks[3] {
		t.Errorf("answer blocks %x, want %x", tail, whole.Blocks[3:])
	}
}

// serveAll runs an engine until it is idle.
func serveAll(e *Engine) {
	for !e.Idle() && e.failure == nil {
		e.Advance(e.NextEvent())
	}
	e.takeFinished()
}

func TestCacheHits(t *testing.T) {
	t.Parallel()
	l := sized(t, "--mem-fraction-static", "0.85")
	e := newEngine(&l.p, &l.s, &l.b, 1, 0)
	ask := func(prompt []uint32) int {
		r := &Request{Prompt: NewPrompt(prompt), MaxNew: 70, Arrival: e.now}
		e.Submit(r)
		serveAll(e)
		return r.Cached
	}
	long := ids(1, 1000)
	for _, c := range []struct {
		name   string
		prompt []uint32
		want   int
	}{
		{"first time", long, 0},
		{"the same again", long, 999},
		{"whole blocks", long[:640], 639},
		{"longer", append(ids(1, 1000), ids(5000, 100)...), 960},
		{"another end", append(ids(1, 500), ids(7000, 500)...), 448},
		{"unrelated", ids(100000, 300), 0},
		{"short", ids(200000, 16), 0},
		{"short again", ids(200000, 16), 15},
	} {
		if got := ask(c.prompt); got != c.want {
			t.Errorf("%s: %d cached, want %d", c.name, got, c.want)
		}
	}
	e.cache.flush()
	if got := ask(long); got != 0 {
		t.Errorf("after a flush: %d cached", got)
	}
}

// Whatever happens, tokens are neither lost nor invented, and nothing stays locked.
func TestCacheAccounting(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{
		nil,
		{"--enable-hierarchical-cache", "--hicache-size", "2"},
		{"--disable-radix-cache"},
		{"--enable-mixed-chunk", "--chunked-prefill-size", "512"},
		{"--schedule-conservativeness", "0.1", "--schedule-policy", "lpm"},
		{"--enable-hierarchical-cache", "--hicache-size", "1", "--hicache-write-policy", "write_through_selective"},
	} {
		l := sized(t, append([]string{"--mem-fraction-static", "0.85", "--max-total-tokens", "9000"}, flags...)...)
		e := newEngine(&l.p, &l.s, &l.b, 1, 0)
		rng := rand.New(rand.NewPCG(1, 1))
		var all []*Request
		for i := range 400 {
			p := ids(rng.IntN(5)*10000, 300+rng.IntN(1500))
			p = append(p, ids(1000000+i*5000, rng.IntN(300))...)
			r := &Request{Prompt: NewPrompt(p), MaxNew: 1 + rng.IntN(600), Arrival: e.now}
			all = append(all, r)
			e.Submit(r)
			e.Advance(e.now + rng.Float64()*2)
			if i%50 == 49 {
				e.abort(func(q *Request) bool { return q == all[i-rng.IntN(40)] })
			}
			if e.cache.freeTokens() < 0 || e.cache.locked > e.cache.device || e.cache.host > e.cache.hostCapacity {
				t.Fatalf("%v: free %d locked %d device %d host %d", flags, e.cache.freeTokens(), e.cache.locked, e.cache.device, e.cache.host)
			}
		}
		serveAll(e)
		c := e.cache
		if c.private != 0 || c.locked != 0 || e.pace.demand != 0 {
			t.Errorf("%v: idle with %d private, %d locked tokens, demand %d", flags, c.private, c.locked, e.pace.demand)
		}
		device, host := 0, 0
		for i := c.lru.front; i != 0; i = c.nodes[i].link.next {
			device += blockTokens
		}
		for i := c.hostLRU.front; i != 0; i = c.nodes[i].host.next {
			host += blockTokens
		}
		if device != c.device || host != c.host {
			t.Errorf("%v: lists hold %d and %d, counters %d and %d", flags, device, host, c.device, c.host)
		}
		for _, r := range all {
			if !r.Done || !r.Aborted && r.Out != r.MaxNew {
				t.Fatalf("%v: request ended with %d of %d tokens (done %v)", flags, r.Out, r.MaxNew, r.Done)
			}
		}
	}
}
