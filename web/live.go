package web

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sgtune/tuner"
)

// Limits of streams.
const (
	heartbeat  = 15 * time.Second // keeps proxies from closing a silent stream
	writeLimit = 10 * time.Second // a reader that takes longer over one message has gone
)

// stream is an open stream of server-sent events.
type stream struct {
	w   http.ResponseWriter
	out *http.ResponseController
}

// events streams one message each time a study (study, all of them without it) has changed since the state the reader knows (after, or
// Last-Event-ID when a browser reconnects), and when its tuner falls silent or is heard again. The page then loads itself again.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("study")
	if _, err := h.stateNow(r.Context(), name); err != nil {
		h.fail(w, r, err)
		return
	}
	known := r.URL.Query().Get("after")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		known = id
	}
	h.follow(w, r, func(s *stream) bool {
		now, err := h.stateNow(r.Context(), name)
		if err != nil {
			return false // the browser connects again, and then it is told
		}
		if now == known {
			return true
		}
		known = now
		return s.send("id: " + now + "\ndata: " + now + "\n\n")
	})
}

// stateNow names the state of a study's pages, or of the list of studies where study is "".
func (h *Handler) stateNow(ctx context.Context, study string) (string, error) {
	if study == "" {
		all, err := h.reader.Pulses(ctx)
		return listID(all, time.Now()), err
	}
	s, err := h.reader.Pulse(ctx, study)
	if err != nil {
		return "", err
	}
	return stateID(s, time.Now()), nil
}

// listID names a state of the list of studies: which there are, and the state of each.
func listID(all []tuner.Summary, now time.Time) string {
	var states []string
	for i := range all {
		states = append(states, all[i].Name+" "+stateID(&all[i], now))
	}
	slices.Sort(states)
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, strings.Join(states, "\n")) // never fails
	return strconv.FormatUint(sum.Sum64(), 36)
}

// stateID names a state of a study's pages: its revision, and whether its tuner is silent.
func stateID(s *tuner.Summary, now time.Time) string {
	id := strconv.FormatInt(s.Revision, 10)
	if s.Silent(now) {
		id += "s"
	}
	return id
}

// follow gives a reader a place among the streams and calls news at once and then every Poll, until it is false or the reader or the
// server goes.
func (h *Handler) follow(w http.ResponseWriter, r *http.Request, news func(s *stream) bool) {
	select {
	case h.live <- struct{}{}:
		defer func() { <-h.live }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d live pages are open, which is the most. Close some, or load this page again by hand.", maxLive), http.StatusServiceUnavailable)
		return
	}
	s := &stream{w: w, out: http.NewResponseController(w)}
	if err := errors.Join(s.out.SetReadDeadline(time.Time{}), s.out.SetWriteDeadline(time.Time{})); err != nil { // a stream has no end
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if s.out.Flush() != nil { // the browser shows "live" from here on
		return
	}
	poll, beat := time.NewTicker(h.opts.Poll), time.NewTicker(h.opts.Heartbeat)
	defer poll.Stop()
	defer beat.Stop()
	for news(s) {
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			if !s.send(": alive\n\n") {
				return
			}
		case <-poll.C:
		}
	}
}

// send writes one message with a deadline of its own: a reader that never reads must not hold us.
func (s *stream) send(message string) bool {
	if s.out.SetWriteDeadline(time.Now().Add(writeLimit)) != nil {
		return false
	}
	if _, err := fmt.Fprint(s.w, message); err != nil {
		return false
	}
	return s.out.Flush() == nil
}

// wantsStream reports whether a request asks for server-sent events rather than a list.
func wantsStream(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}
