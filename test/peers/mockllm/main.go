// Command mockllm is a fast mock of an LLM server with streaming endpoints, used to
// measure load generators. It speaks plain HTTP/1.1 with keep-alive over its own
// connection loop (requests are parsed by net/http, responses are pre-encoded bytes),
// so that on a small machine the client under test, not the mock, is the limit.
//
//	POST /v1/completions, /v1/chat/completions   OpenAI format (stream or not)
//	POST /generate                               SGLang format (stream or not)
//	GET  /v1/models /health /server_info ...     enough for clients to start
//	GET  /mock/stats                             the truth, as JSON
//	POST /mock/reset                             clears the truth
//
// The truth is measured at the socket: TTFT runs from the moment the request body was
// read to the moment just before the first token is written; ITL is the distance
// between the starts of consecutive token writes of one stream.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
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

const maxLat = 4_000_000 // microseconds kept in the histograms

type hist struct{ b []uint32 }

func newHist() *hist { return &hist{make([]uint32, maxLat+1)} }
func (h *hist) add(d time.Duration) {
	us := int64(d / time.Microsecond)
	if us < 0 {
		us = 0
	}
	if us > maxLat {
		us = maxLat
	}
	atomic.AddUint32(&h.b[us], 1)
}

func (h *hist) reset() {
	for i := range h.b {
		atomic.StoreUint32(&h.b[i], 0)
	}
}

func (h *hist) summary() map[string]float64 {
	var n uint64
	var sum float64
	for i := range h.b {
		c := atomic.LoadUint32(&h.b[i])
		n += uint64(c)
		sum += float64(c) * float64(i)
	}
	out := map[string]float64{"n": float64(n)}
	if n == 0 {
		return out
	}
	out["mean_ms"] = sum / float64(n) / 1000
	for _, p := range []float64{50, 90, 99, 99.9} {
		want := uint64(p / 100 * float64(n))
		if want == 0 {
			want = 1
		}
		var acc uint64
		for i := range h.b {
			acc += uint64(atomic.LoadUint32(&h.b[i]))
			if acc >= want {
				out["p"+strconv.FormatFloat(p, 'f', -1, 64)+"_ms"] = float64(i) / 1000
				break
			}
		}
	}
	for i := len(h.b) - 1; i >= 0; i-- {
		if atomic.LoadUint32(&h.b[i]) > 0 {
			out["max_ms"] = float64(i) / 1000
			break
		}
	}
	return out
}

var st struct {
	reqs, done, errs, toks, bytes    atomic.Int64
	conns, active, peak              atomic.Int64
	firstNS, lastNS, busyNS, areaOut atomic.Int64 // areaOut: stream nanoseconds, for mean concurrency
}
var (
	hTTFT, hITL, hLate, hGap = newHist(), newHist(), newHist(), newHist()
	lastArrival              atomic.Int64
)

func reset() {
	for _, a := range []*atomic.Int64{&st.reqs, &st.done, &st.errs, &st.toks, &st.bytes, &st.firstNS, &st.lastNS, &st.busyNS, &st.areaOut, &st.conns} {
		a.Store(0)
	}
	st.peak.Store(st.active.Load())
	hTTFT.reset()
	hITL.reset()
	hLate.reset()
	hGap.reset()
	lastArrival.Store(0)
}

func cpu() float64 {
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return float64(ru.Utime.Sec+ru.Stime.Sec) + float64(ru.Utime.Usec+ru.Stime.Usec)/1e6
}

func statsJSON() []byte {
	first, last := st.firstNS.Load(), st.lastNS.Load()
	dur := float64(last-first) / 1e9
	m := map[string]any{
		"requests": st.reqs.Load(), "completed": st.done.Load(), "injected_errors": st.errs.Load(),
		"tokens": st.toks.Load(), "bytes": st.bytes.Load(), "connections": st.conns.Load(),
		"first_ns": first, "last_ns": last, "duration_s": dur, "peak_concurrency": st.peak.Load(),
		"active": st.active.Load(), "server_cpu_s": cpu(),
		"ttft": hTTFT.summary(), "itl": hITL.summary(), "late": hLate.summary(), "arrival_gap": hGap.summary(),
	}
	if dur > 0 {
		m["mean_concurrency"] = float64(st.areaOut.Load()) / 1e9 / dur
		m["tok_per_s"] = float64(st.toks.Load()) / dur
		m["req_per_s"] = float64(st.done.Load()) / dur
	}
	b, _ := json.Marshal(m)
	return append(b, '\n')
}

// ---- pre-encoded streams -------------------------------------------------------

type script struct {
	chunks [][]byte // one HTTP chunk per SSE event that carries tokens
	ntok   []int    // tokens carried by each
	tail   []byte   // [DONE] and the last HTTP chunk
	usage  []byte   // the usage event, sent before tail when the request asks for it
	full   []byte   // non-streaming body
}

type key struct {
	kind byte
	n    int
}

var (
	smu     sync.RWMutex
	scripts = map[key]*script{}
)

func frame(b []byte) []byte { return []byte(fmt.Sprintf("%x\r\n%s\r\n", len(b), b)) }
func word(i int) string     { return "w" + strconv.Itoa(i%1000) + " " }

func build(kind byte, n int) *script {
	s := &script{}
	const created = 1750000000
	id := "cmpl-0123456789abcdef0123456789abcdef"
	var cum bytes.Buffer
	var ids bytes.Buffer
	for i := 0; i < n; {
		k := min(*perChunk, n-i)
		var txt string
		for j := 0; j < k; j++ {
			txt += word(i + j)
			if *cumul && ids.Len() > 0 {
				ids.WriteString(", ")
			}
			ids.WriteString(strconv.Itoa((i + j) % 1000))
		}
		i += k
		cum.WriteString(txt)
		last := i >= n
		fr, fg := "null", "null"
		if last {
			fr = `"length"`
			fg = fmt.Sprintf(`{"type":"length","length":%d}`, n)
		}
		var ev string
		switch kind {
		case 'c':
			ev = fmt.Sprintf(`data: {"id":"%s","object":"text_completion","created":%d,"model":"%s","choices":[{"index":0,"text":"%s","logprobs":null,"finish_reason":%s,"matched_stop":null}],"usage":null}`, id, created, *model, txt, fr)
		case 'h':
			role := "null"
			if i == k {
				role = `"assistant"`
			}
			ev = fmt.Sprintf(`data: {"id":"%s","object":"chat.completion.chunk","created":%d,"model":"%s","choices":[{"index":0,"delta":{"role":%s,"content":"%s","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":%s,"matched_stop":null}],"usage":null}`, id, created, *model, role, txt, fr)
		case 'g':
			t, d := txt, ids.String()
			if *cumul {
				t = cum.String()
			} else {
				ids.Reset()
			}
			ev = fmt.Sprintf(`data: {"text":"%s","output_ids":[%s],"meta_info":{"id":"%s","finish_reason":%s,"prompt_tokens":16,"weight_version":"default","total_retractions":0,"completion_tokens":%d,"cached_tokens":0}}`, t, d, id, fg, i)
		}
		s.chunks = append(s.chunks, frame([]byte(ev+"\n\n")))
		s.ntok = append(s.ntok, k)
	}
	usage := fmt.Sprintf(`{"prompt_tokens":16,"total_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":null,"reasoning_tokens":0}`, 16+n, n)
	var tail bytes.Buffer
	switch kind {
	case 'c':
		s.usage = frame([]byte(fmt.Sprintf("data: {\"id\":\"%s\",\"object\":\"text_completion\",\"created\":%d,\"model\":\"%s\",\"choices\":[],\"usage\":%s}\n\n", id, created, *model, usage)))
		s.full = []byte(fmt.Sprintf(`{"id":"%s","object":"text_completion","created":%d,"model":"%s","choices":[{"index":0,"text":"%s","logprobs":null,"finish_reason":"length"}],"usage":%s}`, id, created, *model, cum.String(), usage))
	case 'h':
		s.usage = frame([]byte(fmt.Sprintf("data: {\"id\":\"%s\",\"object\":\"chat.completion.chunk\",\"created\":%d,\"model\":\"%s\",\"choices\":[],\"usage\":%s}\n\n", id, created, *model, usage)))
		s.full = []byte(fmt.Sprintf(`{"id":"%s","object":"chat.completion","created":%d,"model":"%s","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"length"}],"usage":%s}`, id, created, *model, cum.String(), usage))
	case 'g':
		s.full = []byte(fmt.Sprintf(`{"text":"%s","output_ids":[],"meta_info":{"id":"%s","finish_reason":{"type":"length","length":%d},"prompt_tokens":16,"completion_tokens":%d,"cached_tokens":0}}`, cum.String(), id, n, n))
	}
	tail.Write(frame([]byte("data: [DONE]\n\n")))
	tail.WriteString("0\r\n\r\n")
	s.tail = tail.Bytes()
	return s
}

func get(kind byte, n int) *script {
	k := key{kind, n}
	smu.RLock()
	s := scripts[k]
	smu.RUnlock()
	if s != nil {
		return s
	}
	smu.Lock() // one builder: a thousand first requests at once must not all build
	defer smu.Unlock()
	if s = scripts[k]; s == nil {
		s = build(kind, n)
		scripts[k] = s
	}
	return s
}

// intField finds "name": <digits> anywhere in the body, without parsing it.
func intField(body []byte, name string) (int, bool) {
	i := bytes.LastIndex(body, []byte(`"`+name+`"`))
	if i < 0 {
		return 0, false
	}
	j := i + len(name) + 2
	for j < len(body) && (body[j] == ' ' || body[j] == ':') {
		j++
	}
	v, ok := 0, false
	for j < len(body) && body[j] >= '0' && body[j] <= '9' {
		v, ok = v*10+int(body[j]-'0'), true
		j++
	}
	return v, ok
}

func isStream(body []byte) bool {
	i := bytes.LastIndex(body, []byte(`"stream"`))
	if i < 0 {
		return false
	}
	t := bytes.TrimLeft(body[i+8:min(len(body), i+20)], " :")
	return bytes.HasPrefix(t, []byte("true"))
}

var sseHead = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n")

func plain(c net.Conn, code int, ct string, body []byte) error {
	_, err := c.Write(append([]byte(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", code, http.StatusText(code), ct, len(body))), body...))
	return err
}

var errCut = errors.New("cut")

func generate(c net.Conn, kind byte, body []byte, t0 time.Time) error {
	n := *tokens
	for _, f := range []string{"max_completion_tokens", "max_tokens", "max_new_tokens"} {
		if v, ok := intField(body, f); ok && v > 0 {
			n = v
			break
		}
	}
	seq := st.reqs.Add(1)
	st.firstNS.CompareAndSwap(0, t0.UnixNano())
	if p := lastArrival.Swap(t0.UnixNano()); p != 0 {
		hGap.add(time.Duration(t0.UnixNano() - p))
	}
	a := st.active.Add(1)
	for {
		p := st.peak.Load()
		if a <= p || st.peak.CompareAndSwap(p, a) {
			break
		}
	}
	defer func() {
		st.active.Add(-1)
		now := time.Now()
		st.areaOut.Add(int64(now.Sub(t0)))
		st.lastNS.Store(now.UnixNano())
	}()
	if *failEach > 0 && seq%int64(*failEach) == 0 {
		st.errs.Add(1)
		return plain(c, 500, "application/json", []byte(`{"error":{"message":"injected","type":"server_error","code":500}}`))
	}
	s := get(kind, n)
	if !isStream(body) {
		time.Sleep(time.Until(t0.Add(*ttft + time.Duration(n-1)**itl)))
		if err := plain(c, 200, "application/json", s.full); err != nil {
			return err
		}
		st.done.Add(1)
		st.toks.Add(int64(n))
		return nil
	}
	if _, err := c.Write(sseHead); err != nil {
		return err
	}
	cut := -1
	if *cutEach > 0 && seq%int64(*cutEach) == 0 {
		cut = len(s.chunks) / 2
		st.errs.Add(1)
	}
	var sent int64
	if *itl == 0 {
		if *ttft > 0 {
			time.Sleep(time.Until(t0.Add(*ttft)))
		}
		var buf []byte
		for i := 0; i < len(s.chunks); i++ {
			if i == cut {
				return errCut
			}
			if i == 0 {
				hTTFT.add(time.Since(t0))
			}
			if *flushN <= 1 || i == 0 {
				if _, err := c.Write(s.chunks[i]); err != nil {
					return err
				}
				sent += int64(len(s.chunks[i]))
				continue
			}
			buf = append(buf, s.chunks[i]...)
			if i%*flushN == 0 || i == len(s.chunks)-1 {
				if _, err := c.Write(buf); err != nil {
					return err
				}
				sent += int64(len(buf))
				buf = buf[:0]
			}
		}
	} else {
		var prev time.Time
		due := t0.Add(*ttft)
		if *step { // first token falls on the next global step
			due = time.Unix(0, (due.UnixNano()/int64(*itl)+1)*int64(*itl))
		}
		for i, ch := range s.chunks {
			if i == cut {
				return errCut
			}
			if d := time.Until(due); d > 0 {
				time.Sleep(d)
			}
			if *stall > 0 {
				b := time.Unix(0, st.firstNS.Load()).Add(*stallAt)
				if now := time.Now(); now.After(b) && now.Before(b.Add(*stall)) {
					time.Sleep(b.Add(*stall).Sub(now))
				}
			}
			now := time.Now()
			hLate.add(now.Sub(due))
			if i == 0 {
				hTTFT.add(now.Sub(t0))
			} else {
				hITL.add(now.Sub(prev))
			}
			prev = now
			if _, err := c.Write(ch); err != nil {
				return err
			}
			sent += int64(len(ch))
			due = due.Add(*itl * time.Duration(s.ntok[i]))
		}
	}
	tail := s.tail
	if i := bytes.LastIndex(body, []byte(`"include_usage"`)); i >= 0 && s.usage != nil &&
		bytes.HasPrefix(bytes.TrimLeft(body[i+15:], " :"), []byte("true")) {
		tail = append(append([]byte(nil), s.usage...), s.tail...)
	}
	if _, err := c.Write(tail); err != nil {
		return err
	}
	st.bytes.Add(sent + int64(len(tail)))
	st.toks.Add(int64(n))
	st.done.Add(1)
	return nil
}

func serve(c net.Conn) {
	defer c.Close()
	st.conns.Add(1)
	br := bufio.NewReaderSize(c, 16<<10)
	var body []byte
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		if r.Header.Get("Expect") == "100-continue" {
			c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
		}
		if n := r.ContentLength; n >= 0 {
			if int64(cap(body)) < n {
				body = make([]byte, n)
			}
			body = body[:n]
			_, err = io.ReadFull(r.Body, body)
		} else {
			body, err = io.ReadAll(r.Body)
		}
		if err != nil {
			return
		}
		t0 := time.Now()
		switch r.URL.Path {
		case "/v1/completions":
			err = generate(c, 'c', body, t0)
		case "/v1/chat/completions":
			err = generate(c, 'h', body, t0)
		case "/generate":
			err = generate(c, 'g', body, t0)
		case "/v1/models":
			err = plain(c, 200, "application/json", []byte(fmt.Sprintf(`{"object":"list","data":[{"id":"%s","object":"model","created":1750000000,"owned_by":"mock","root":"%s","max_model_len":131072}]}`, *model, *model)))
		case "/get_model_info", "/model_info":
			err = plain(c, 200, "application/json", []byte(fmt.Sprintf(`{"model_path":"%s","tokenizer_path":"%s","is_generation":true}`, *model, *model)))
		case "/get_server_info", "/server_info":
			err = plain(c, 200, "application/json", []byte(`{"version":"mock","internal_states":[{"last_gen_throughput":0}]}`))
		case "/health", "/health_generate", "/flush_cache":
			err = plain(c, 200, "text/plain", nil)
		case "/mock/stats":
			err = plain(c, 200, "application/json", statsJSON())
		case "/mock/reset":
			reset()
			err = plain(c, 200, "application/json", []byte("{}\n"))
		case "/metrics":
			err = plain(c, 200, "text/plain", []byte("# mock\n"))
		default:
			err = plain(c, 404, "application/json", []byte(`{"error":"not found"}`))
		}
		if err != nil || r.Close {
			return
		}
	}
}

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
