package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sgtune/sglang"
	"sgtune/tuner"
)

// apiEvent is one event of /api/v1/studies/{id}/events.
type apiEvent struct {
	ID     int64         `json:"id"` // only grows, over all studies of a database
	At     time.Time     `json:"at,omitzero"`
	Kind   string        `json:"kind"`
	Text   string        `json:"text"`
	Trial  *int          `json:"trial,omitempty"`
	Config sglang.Config `json:"config,omitempty"`
}

// Events a request gets at once.
const (
	eventsUsual = 100
	eventsMost  = 1000
)

// apiEvents lists a study's events after an id (after, 0 = from the first), oldest first, at most limit; last is where to go on. Who
// accepts text/event-stream is sent them as they come, each under its id, so that a reader who comes back with Last-Event-ID gets each
// once.
func (h *Handler) apiEvents(w http.ResponseWriter, r *http.Request) {
	s, err := h.summary(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	query := r.URL.Query()
	after, err := wholeOf(query.Get("after"), 0, "after", "the id of an event, 0 for all of them")
	limit, problem := wholeOf(query.Get("limit"), eventsUsual, "limit", "how many events to send at once")
	if err == nil {
		err = problem
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if wantsStream(r) {
		if id, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil && id >= 0 {
			after = id
		}
		h.follow(w, r, func(out *stream) bool { return h.sendNews(r, out, s.Name, &after) })
		return
	}
	events, err := h.reader.Happened(r.Context(), s.Name, after, int(min(max(limit, 1), eventsMost)))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	list := make([]apiEvent, len(events))
	for i, e := range events {
		list[i], after = newAPIEvent(e), e.ID
	}
	h.sendJSON(w, r, map[string]any{"study": s.Name, "events": list, "last": after})
}

// sendNews sends all events after an id and moves it on.
func (h *Handler) sendNews(r *http.Request, out *stream, study string, after *int64) bool {
	for {
		events, err := h.reader.Happened(r.Context(), study, *after, eventsUsual)
		if err != nil {
			return false
		}
		for _, e := range events {
			data, err := json.Marshal(newAPIEvent(e))
			if err != nil || !out.send(fmt.Sprintf("id: %d\ndata: %s\n\n", e.ID, data)) {
				return false
			}
			*after = e.ID
		}
		if len(events) < eventsUsual {
			return true
		}
	}
}

func newAPIEvent(e tuner.Happened) apiEvent {
	return apiEvent{ID: e.ID, At: e.At, Kind: e.Kind, Text: e.Text, Trial: e.Trial, Config: e.Config}
}

// wholeOf reads a whole number of a query, other where it is not given.
func wholeOf(text string, other int64, name, meaning string) (int64, error) {
	if text == "" {
		return other, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, misasked{name + " is a whole number: " + meaning + "."}
	}
	return n, nil
}
