package web

import (
	"errors"
	"net/http"
)

// readForm reads a form of at most so many bytes into r.PostForm. It answers itself, and returns false, when there is none or it
// is longer, which tooLong says in a sentence; back is where the reader came from.
func (h *Handler) readForm(w http.ResponseWriter, r *http.Request, most int64, tooLong string, back crumb) bool {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	err := r.ParseForm()
	if err == nil {
		return true
	}
	status, text := http.StatusBadRequest, "The form could not be read. Open the page again and send it from there."
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		status, text = http.StatusRequestEntityTooLarge, tooLong
	}
	h.render(w, r, status, "error.html", page{
		Title: http.StatusText(status), Body: errorBody{Text: text, Asked: cut(r.URL.Path, longestAsked), Where: []crumb{back}},
	})
	return false
}
