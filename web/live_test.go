package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sgtune/tuner"
	"sgtune/web"
)

// message is one server-sent event.
type message struct{ id, data string }

// listener reads a stream.
type listener struct {
	t    *testing.T
	body *bufio.Reader
}

// listen opens a stream at a path.
func listen(t *testing.T, ctx context.Context, addr, path, last string) (*listener, *http.Response) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return &listener{t, bufio.NewReader(response.Body)}, response
}

// next reads one message; comments are passed over.
func (l *listener) next() (m message) {
	l.t.Helper()
	for {
		line, err := l.body.ReadString('\n')
		if err != nil {
			l.t.Errorf("the stream ended: %v", err)
			return m
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
		case "id":
			m.id = value
		case "data":
			m.data = value
		case "":
			if m.id != "" && value == "" {
				return m
			}
		}
	}
}

// TestEventsResume loses the connection at every event: each comes once, in order.
func TestEventsResume(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "begun")
	const count = 120
	add := func(from, to int) {
		for i := from; i < to; i++ {
			if err := f.db.AddEvent(t.Context(), "begun", tuner.Event{Kind: "plan", Text: fmt.Sprintf("event %d\nsecond line %s", i, nasty)}); err != nil {
				t.Error(err)
			}
		}
	}
	add(0, count-10)
	addr, _ := start(t, web.New(f.db, web.Options{Poll: 5 * time.Millisecond}))
	var group sync.WaitGroup
	group.Go(func() { add(count-10, count) }) // while they are read
	defer group.Wait()
	last, seen := "", 0
	for seen < count {
		ctx, leave := context.WithCancel(t.Context())
		stream, _ := listen(t, ctx, addr, "/api/v1/studies/begun/events", last)
		for range min(1+seen/3, count-seen) { // longer and longer
			m := stream.next()
			var e struct {
				ID   int64
				Text string
			}
			if err := json.Unmarshal([]byte(m.data), &e); err != nil || fmt.Sprint(e.ID) != m.id || !strings.HasPrefix(e.Text, fmt.Sprintf("event %d\n", seen)) {
				t.Fatalf("message %d is %+v (%v)", seen, m, err)
			}
			last = m.id
			seen++
		}
		leave()
	}
}

// TestHundredReaders has 100 live pages, and one reader who never reads, told of a change at once.
func TestHundredReaders(t *testing.T) { // alone: other tests watch the heap
	m := sample()
	long := strings.Repeat("x", 200_000)
	for range 120 { // more than any buffer between us holds
		m.happen(tuner.Event{Kind: "plan", Text: long})
	}
	addr, stop := start(t, web.New(m, web.Options{Poll: 10 * time.Millisecond}))
	deaf, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = deaf.Close() }()
	if _, err := fmt.Fprintf(deaf, "GET /api/v1/studies/night/events HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", addr); err != nil {
		t.Fatal(err)
	}
	var streams []*listener
	for i := range 100 {
		path, last := "/events?study=night&after=7", ""
		if i%2 == 0 {
			path, last = "/api/v1/studies/night/events", fmt.Sprint(len(m.happened))
		}
		stream, response := listen(t, t.Context(), addr, path, last)
		if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
			t.Fatalf("stream %d: %d %s", i, response.StatusCode, kind)
		}
		streams = append(streams, stream)
	}
	began := time.Now()
	m.happen(tuner.Event{Kind: "command", Text: "news"})
	m.touch()
	var group sync.WaitGroup
	for i, stream := range streams {
		group.Go(func() {
			got := stream.next()
			if want := []string{"122", "8"}[i%2]; got.id != want {
				t.Errorf("stream %d: %.80v, want id %s", i, got, want)
			}
		})
	}
	group.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("news took %s", took)
	}
	if err := stop(); err != nil { // with all of them open
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("stopping took %s", took)
	}
}

// TestStreamPlaces has more live pages than there are places: the rest is told when to come again, and a place that is left is free.
func TestStreamPlaces(t *testing.T) { // alone: other tests watch the heap
	addr, _ := start(t, web.New(sample(), web.Options{Poll: time.Minute}))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for i := range 128 {
		if _, response := listen(t, ctx, addr, "/events?study=night", ""); response.StatusCode != http.StatusOK {
			t.Fatalf("stream %d: %d", i, response.StatusCode)
		}
	}
	for _, path := range []string{"/events?study=night", "/api/v1/studies/night/events"} {
		_, response := listen(t, t.Context(), addr, path, "")
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "10" {
			t.Errorf("%s: %d, Retry-After %q", path, response.StatusCode, response.Header.Get("Retry-After"))
		}
	}
	leave()
	for range 500 {
		if _, response := listen(t, t.Context(), addr, "/events?study=night", ""); response.StatusCode == http.StatusOK {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("no place came free")
}

// TestStreamHeartbeat has a stream on which nothing happens say that it lives.
func TestStreamHeartbeat(t *testing.T) {
	t.Parallel()
	addr, _ := start(t, web.New(sample(), web.Options{Heartbeat: 10 * time.Millisecond}))
	stream, _ := listen(t, t.Context(), addr, "/events?study=night&after=7", "")
	if line, err := stream.body.ReadString('\n'); err != nil || line != ": alive\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestStreamSilence tells a page when its tuner falls silent and when it is heard again.
func TestStreamSilence(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "running")
	hear := func(at time.Time) {
		if err := f.db.Hear(t.Context(), "running", tuner.Heard{At: at, Since: at, PID: 1}); err != nil {
			t.Fatal(err)
		}
	}
	hear(time.Now())
	addr, _ := start(t, web.New(f.db, web.Options{Poll: 5 * time.Millisecond}))
	stream, _ := listen(t, t.Context(), addr, "/events?study=running", "")
	revision := stream.next().id
	hear(time.Now().Add(-tuner.SilentAfter))
	if got := stream.next().id; got != revision+"s" {
		t.Errorf("silent: %q after %q", got, revision)
	}
	hear(time.Now())
	if got := stream.next().id; got != revision {
		t.Errorf("heard again: %q after %q", got, revision)
	}
}

// TestStreamOfAllStudies tells the list of studies when any of them changes, comes or falls silent.
func TestStreamOfAllStudies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "running", "better")
	hear := func(at time.Time) error {
		return f.db.Hear(t.Context(), "running", tuner.Heard{At: at, Since: at, PID: 1})
	}
	if err := hear(time.Now().Add(time.Hour)); err != nil { // however slow this test is
		t.Fatal(err)
	}
	text := get(t, f.handler(), "/").Body.String()
	_, state, found := strings.Cut(text, `data-study="" data-revision="`)
	state, _, _ = strings.Cut(state, `"`)
	if !found || !strings.Contains(text, "/live.js") {
		t.Fatalf("the list follows nothing: %.1000s", text)
	}
	addr, _ := start(t, web.New(f.db, web.Options{Poll: 5 * time.Millisecond}))
	stream, _ := listen(t, t.Context(), addr, "/events?study=&after="+state, "")
	seen := map[string]bool{state: true}
	for name, change := range map[string]func() error{
		"an event": func() error { return f.db.AddEvent(t.Context(), "better", tuner.Event{Kind: "plan", Text: "news"}) },
		"a new study": func() error {
			return f.db.SaveStudy(t.Context(), &tuner.Record{Name: "new", State: tuner.StudyRunning})
		},
		"silence": func() error { return hear(time.Now().Add(-time.Hour)) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		id := stream.next().id
		if seen[id] {
			t.Errorf("%s: told %q again", name, id)
		}
		seen[id] = true
	}
}

// TestEventsList is the list of events for who does not stream.
func TestEventsList(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "running")
	h := f.handler()
	for path, want := range map[string]string{
		"/api/v1/studies/running/events":         `"kind":"plan"`,
		"/api/v1/studies/running/events?limit=1": `"last":1,`,
		"/api/v1/studies/running/events?after=1": `"kind":"finding"`,
		"/api/v1/studies/running/events?after=2": `{"events":[],"last":2,"study":"running"}`,
	} {
		if w := get(t, h, path); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
	for path, status := range map[string]int{
		"/api/v1/studies/nobody/events": http.StatusNotFound, "/api/v1/studies/running/events?after=x": http.StatusBadRequest, "/api/v1/studies/running/events?limit=-1": http.StatusBadRequest,
	} {
		if w := get(t, h, path); w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
}

// TestMetrics holds the names and labels that dashboards rely on.
func TestMetrics(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "running", "better")
	f.alive("running")
	w := get(t, f.handler(), "/metrics")
	text := w.Body.String()
	for _, want := range []string{
		`sgtune_build_info{version="v1"} 1`, `sgtune_study_running{study="running"} 1`, `sgtune_study_running{study="better"} 0`, `sgtune_study_state{study="better",state="complete"} 1`,
		`sgtune_study_gain_ratio{study="better",answer="better"} 0.142`, `sgtune_trials{study="running",state="complete",outcome="ok",void="false"} 2`,
		`sgtune_trials{study="running",state="failed",outcome="gpu_oom",void="false"} 2`, `sgtune_trials{study="running",state="pruned",outcome="ok",void="true"} 1`,
		`sgtune_best_value{study="running",objective="output_tok_s"} 2121`, `sgtune_baseline_value{study="running",objective="output_tok_s"} 1842.4`,
		`sgtune_running_trial_step{study="running",trial="6",role="search",step="measure"} 1`, `sgtune_running_trial_gpu_memory_free_min_bytes{study="running",trial="6"} 2.147483648e+09`,
		`sgtune_running_trial_host_memory_available_min_bytes{study="running",trial="6"} 7.1e+10`, `sgtune_live_streams 0`, `sgtune_trials_finished{study="running"} 6`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	helped := map[string]bool{}
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, "# TYPE "); found {
			name, _, _ := strings.Cut(rest, " ")
			if helped[name] {
				t.Errorf("%s is described twice", name)
			}
			helped[name] = true
		} else if name, _, _ := strings.Cut(strings.Fields(line)[0], "{"); !strings.HasPrefix(line, "#") && !helped[name] {
			t.Errorf("%s before its type", name)
		}
	}
	if kind := w.Header().Get("Content-Type"); kind != "text/plain; version=0.0.4; charset=utf-8" {
		t.Error(kind)
	}
}

// TestSlowLoris holds connections open with headers, and with a body, that never end: they are cut, and others are served meanwhile.
func TestSlowLoris(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the server's time limits: 11 s, in the slow tier")
	}
	t.Parallel()
	addr, _ := start(t, web.New(sample(), web.Options{Token: token}))
	began := time.Now()
	var group sync.WaitGroup
	for name, sent := range map[string]string{
		"header": "GET / HTTP/1.1\r\nHost: " + addr + "\r\nX-Slow: ",
		"body":   "POST /login HTTP/1.1\r\nHost: " + addr + "\r\nOrigin: http://" + addr + "\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 4000\r\n\r\n",
	} {
		group.Go(func() {
			c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			for {
				if _, err := c.Write([]byte(sent)); err != nil {
					break // cut
				}
				sent = "x"
				_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				if _, err := bufio.NewReader(c).ReadString('\n'); err == nil {
					break // answered, and then cut
				}
				if time.Since(began) > 20*time.Second {
					t.Errorf("%s: still open", name)
					return
				}
			}
		})
	}
	if _, response := listen(t, t.Context(), addr, "/api/v1/studies", ""); response.StatusCode != http.StatusUnauthorized || time.Since(began) > 2*time.Second {
		t.Errorf("others wait: %d after %s", response.StatusCode, time.Since(began))
	}
	group.Wait()
}
