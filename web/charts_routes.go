package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"sgtune/web/chart"
)

// chartRoutes are the addresses of charts: their data as columns, and each table as CSV.
func (h *Handler) chartRoutes(r chi.Router) {
	r.Get("/api/v1/studies/{id}/charts", h.apiCharts)
	r.Get("/api/v1/studies/{id}/charts/{file}", h.apiChartCSV)
	r.Get("/api/v1/studies/{id}/trials/{number}/charts", h.apiLife)
	r.Get("/api/v1/studies/{id}/trials/{number}/charts/life.csv", h.apiLifeCSV)
}

func (h *Handler) apiCharts(w http.ResponseWriter, r *http.Request) {
	name, err := studyName(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	d, err := h.drawn(r.Context(), name)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.sendPacked(w, r, d.packed)
}

// sendPacked answers with JSON that is already compressed.
func (h *Handler) sendPacked(w http.ResponseWriter, r *http.Request, packed []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Vary", "Accept-Encoding")
	if takesGzip(r) {
		header.Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed) // the reader has gone; nothing is left to do
		return
	}
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	_, _ = io.Copy(w, plain) // as above
}

func (h *Handler) apiChartCSV(w http.ResponseWriter, r *http.Request) {
	name, err := studyName(r)
	chartName, isCSV := strings.CutSuffix(chi.URLParam(r, "file"), ".csv")
	if err != nil || !isCSV {
		h.fail(w, r, errNoPage)
		return
	}
	table, ok, err := h.figureTable(r.Context(), name, chartName)
	if err == nil && !ok {
		err = errNoPage
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.sendCSV(w, r, name+"-"+chartName, table)
}

func (h *Handler) apiLife(w http.ResponseWriter, r *http.Request) {
	s, t, err := h.trialOf(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	text, err := h.lifeJSON(s, t)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Vary", "Accept-Encoding")
	if !takesGzip(r) {
		_, _ = w.Write(text) // the reader has gone; nothing is left to do
		return
	}
	header.Set("Content-Encoding", "gzip")
	pack := gzip.NewWriter(w)
	_, _ = pack.Write(text) // as above
	_ = pack.Close()
}

func (h *Handler) apiLifeCSV(w http.ResponseWriter, r *http.Request) {
	s, t, err := h.trialOf(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	h.sendCSV(w, r, t.Study+"-"+strconv.Itoa(t.Number)+"-life", h.life(s, t).Table())
}

// sendCSV sends a table as a file. Names of studies have no character that a header could not hold.
func (h *Handler) sendCSV(w http.ResponseWriter, r *http.Request, name string, table chart.Table) {
	var b bytes.Buffer
	if err := table.WriteCSV(&b); err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+fileName(name)+`.csv"`)
	_, _ = w.Write(b.Bytes()) // the reader has gone; nothing is left to do
}

// fileName keeps what is plain in every file system and header.
func fileName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '_'
	}, name)
}

// takesGzip reports whether a browser takes a compressed answer.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" {
			return strings.ReplaceAll(q, " ", "") != "q=0"
		}
	}
	return false
}
