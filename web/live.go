package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// heartbeat keeps proxies from closing a silent stream.
const heartbeat = 15 * time.Second

// events streams one message each time a study has changed since the revision the reader knows (after,
// or Last-Event-ID when a browser reconnects). The page then loads itself again.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	select {
	case h.live <- struct{}{}:
		defer func() { <-h.live }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "Too many live pages are open. Close some, or load this page again by hand.", http.StatusServiceUnavailable)
		return
	}
	name := r.URL.Query().Get("study")
	if _, err := h.revision(r.Context(), name); err != nil {
		h.fail(w, r, err)
		return
	}
	known := r.URL.Query().Get("after")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		known = id
	}
	seen, err := strconv.ParseInt(known, 10, 64)
	if err != nil {
		seen = -1
	}
	out := http.NewResponseController(w)
	if err := errors.Join(out.SetReadDeadline(time.Time{}), out.SetWriteDeadline(time.Time{})); err != nil { // a stream has no end
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if out.Flush() != nil { // the browser shows "live" from here on
		return
	}
	h.stream(w, r, out, name, seen)
}

// stream writes until the reader or the server goes.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, out *http.ResponseController, name string, seen int64) {
	poll, beat := time.NewTicker(h.opts.Poll), time.NewTicker(heartbeat)
	defer poll.Stop()
	defer beat.Stop()
	for {
		revision, err := h.revision(r.Context(), name)
		if err != nil {
			return // the browser connects again, and then it is told
		}
		if revision != seen {
			seen = revision
			if !send(w, out, fmt.Sprintf("id: %d\ndata: %d\n\n", revision, revision)) {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			if !send(w, out, ": alive\n\n") {
				return
			}
		case <-poll.C:
		}
	}
}

// send writes one message with a deadline of its own: a reader that never reads must not hold us.
func send(w http.ResponseWriter, out *http.ResponseController, message string) bool {
	if out.SetWriteDeadline(time.Now().Add(10*time.Second)) != nil {
		return false
	}
	if _, err := fmt.Fprint(w, message); err != nil {
		return false
	}
	return out.Flush() == nil
}

// revision is the change counter of a study.
func (h *Handler) revision(ctx context.Context, name string) (int64, error) {
	s, err := h.reader.Summary(ctx, name)
	if err != nil {
		return 0, err
	}
	return s.Revision, nil
}
