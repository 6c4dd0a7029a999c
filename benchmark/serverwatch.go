package benchmark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"sort"
	"time"
)

// ServerWatch reads a server's /metrics page while load is on it. One Stop must follow.
type ServerWatch struct {
	target Target
	clock  Clock
	looks  *lookout
	record *ServerRecord // the lookout's until it is halted
}

const (
	// defaultScrape is the host time between two looks. SGLang's page is made by its HTTP process from the
	// files of all its processes, tens of milliseconds in which no token leaves: more often would disturb
	// what is measured.
	defaultScrape = 5 * time.Second
	leastScrape   = 250 * time.Millisecond // real time: a simulated host's seconds are short
	scrapeTimeout = 10 * time.Second       // real time
	maxMetrics    = 16 << 20               // a page with all ranks of a big server has 1 to 2 MB
)

// ErrNoMetrics is wrapped by WatchServer's error where the server has no metrics to look at.
var ErrNoMetrics = errors.New("the server shows no metrics")

// WatchServer reads the server's metrics now and then each so often (host time; 0 = 5 s) until Stop. Its
// error says why there will be no view of the server's own: it has no /metrics, or cannot be reached.
func WatchServer(ctx context.Context, target Target, clock Clock, every time.Duration) (*ServerWatch, error) {
	if clock == nil {
		clock = RealClock()
	}
	if every <= 0 {
		every = defaultScrape
	}
	every = max(every, time.Duration(float64(leastScrape)*clock.Scale()))
	w := &ServerWatch{target: target, clock: clock, record: &ServerRecord{last: map[seriesKey]float64{}}}
	if err := w.look(ctx); err != nil {
		return nil, err
	}
	w.looks = keepLooking(ctx, clock, every, w.lookAgain)
	return w, nil
}

// lookAgain counts a look that fails; the next one may not.
func (w *ServerWatch) lookAgain(ctx context.Context) {
	if err := w.look(ctx); err != nil {
		w.record.missed++
	}
}

// LookNow hints that now is a good time to look, for example at the end of a window. It does not wait, it
// looks hardly more often than without, and it may be called on nil.
func (w *ServerWatch) LookNow() {
	if w != nil {
		w.looks.now()
	}
}

// Stop looks a last time, shortly if ctx has ended, and returns what was seen.
func (w *ServerWatch) Stop(ctx context.Context) *ServerRecord {
	w.looks.halt(ctx, w.lookAgain)
	return w.record
}

// look reads the page once.
func (w *ServerWatch) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	before := w.clock.Now()
	status, page, err := w.target.call(ctx, http.MethodGet, "/metrics", nil, maxMetrics)
	if errors.Is(err, errRedirect) { // mounted as a folder, like prometheus_client's own application
		status, page, err = w.target.call(ctx, http.MethodGet, "/metrics/", nil, maxMetrics)
	}
	switch {
	case err != nil:
		return fmt.Errorf("metrics of the server: %w", err)
	case status == http.StatusNotFound:
		return fmt.Errorf("%w: /metrics answered 404 (SGLang: start it with --enable-metrics)", ErrNoMetrics)
	case status != http.StatusOK:
		return fmt.Errorf("%w: /metrics answered %d: %s", ErrNoMetrics, status, excerpt(page))
	case bytes.HasPrefix(bytes.TrimSpace(page), []byte("<")):
		return fmt.Errorf("%w: /metrics is a web page", ErrNoMetrics)
	}
	r, err := readMetrics(page)
	if err != nil {
		return fmt.Errorf("metrics of the server: %w", err)
	}
	// The page is made somewhere between asking and answering.
	w.record.add(before.Add(w.clock.Now().Sub(before)/2), r)
	return nil
}

// ServerRecord is what a ServerWatch saw.
type ServerRecord struct {
	product   string
	points    []point
	last      map[seriesKey]float64 // of each series
	total     [figures]float64      // counted since the first look
	known     [figures]bool         // counters that were ever seen
	missed    int
	restarted bool
}

// point is one look: gauges now, counters since the first look.
type point struct {
	at     time.Time
	gauges [firstCounter]float64
	total  [figures]float64
}

// add books one reading. A counter that went down was started again, and what it shows is new; one that was
// not there before began at 0, since a series appears with its first event.
func (r *ServerRecord) add(at time.Time, now reading) {
	if now.product != "" {
		r.product = now.product
	}
	first := len(r.points) == 0
	for key, value := range now.series {
		r.known[key.figure] = true
		before := r.last[key]
		switch {
		case first:
		case value < before:
			r.restarted = true
			r.total[key.figure] += value
		default:
			r.total[key.figure] += value - before
		}
	}
	maps.Copy(r.last, now.series) // one that is missing once is not gone
	r.points = append(r.points, point{at, now.gauges, r.total})
}

// around returns the looks before and after a time, and which share of the way it is from one to the other.
func (r *ServerRecord) around(t time.Time) (before, after point, share float64) {
	i := sort.Search(len(r.points), func(i int) bool { return !r.points[i].at.Before(t) })
	switch {
	case i == 0:
		return r.points[0], r.points[0], 0
	case i == len(r.points):
		return r.points[i-1], r.points[i-1], 0
	}
	before, after = r.points[i-1], r.points[i]
	return before, after, float64(t.Sub(before.at)) / float64(after.at.Sub(before.at))
}

// at is a counter at a time, on the straight line between the looks before and after it.
func (r *ServerRecord) at(f figure, t time.Time) float64 {
	before, after, share := r.around(t)
	return before.total[f] + share*(after.total[f]-before.total[f])
}

// apart is how far a time is from the nearest look.
func (r *ServerRecord) apart(t time.Time) time.Duration {
	before, after, share := r.around(t)
	return time.Duration(min(share, 1-share) * float64(after.at.Sub(before.at)))
}

// gauge is the mean and the largest of a gauge's values between two times, NaN when it was not seen there.
func (r *ServerRecord) gauge(f figure, from, to time.Time) (mean, most float64) {
	sum, n := 0.0, 0
	most = math.NaN()
	for _, p := range r.points {
		if v := p.gauges[f]; !math.IsNaN(v) && !p.at.Before(from) && !p.at.After(to) {
			sum += v
			n++
			if !(most >= v) {
				most = v
			}
		}
	}
	if n == 0 {
		return math.NaN(), most
	}
	return sum / float64(n), most
}
