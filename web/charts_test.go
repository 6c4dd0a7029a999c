package web_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sgtune/tuner"
	"sgtune/web"
)

func gzipped(r *http.Request) { r.Header.Set("Accept-Encoding", "br, gzip") }

// unpack is the body of an answer, whatever its encoding.
func unpack(t *testing.T, w *httptest.ResponseRecorder) []byte {
	t.Helper()
	var body io.Reader = w.Body
	if w.Header().Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		body = plain
	}
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestEChartsIsThePackages holds the library against the SHA-256 of echarts.min.js in the npm package echarts@6.1.0.
func TestEChartsIsThePackages(t *testing.T) {
	t.Parallel()
	const want = "b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0"
	h := web.New(sample(), web.Options{})
	for name, change := range map[string]func(*http.Request){
		"packed": gzipped, "plain": func(*http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := regexp.MustCompile(`/static/[^"]+/echarts\.min\.js`).FindString(get(t, h, "/studies/night").Body.String())
			w := get(t, h, address, change)
			if packed := w.Header().Get("Content-Encoding") == "gzip"; packed != (name == "packed") {
				t.Errorf("Content-Encoding %q", w.Header().Get("Content-Encoding"))
			}
			if n := w.Body.Len(); name == "packed" && n > 370_000 {
				t.Errorf("%d bytes are sent", n)
			}
			if !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
				t.Errorf("Cache-Control %q", w.Header().Get("Cache-Control"))
			}
			sum := sha256.Sum256(unpack(t, w))
			if got := hex.EncodeToString(sum[:]); got != want {
				t.Errorf("SHA-256 %s, want %s", got, want)
			}
		})
	}
	for _, name := range []string{"LICENSE", "NOTICE", "LICENSE-d3"} {
		if text, err := os.ReadFile(filepath.Join("static", "echarts", name)); err != nil || len(text) < 100 {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
}

func TestChartData(t *testing.T) {
	t.Parallel()
	h := web.New(sample(), web.Options{})
	for name, change := range map[string]func(*http.Request){"packed": gzipped, "plain": func(*http.Request) {}} {
		w := get(t, h, "/api/v1/studies/night/charts", change)
		var sent struct {
			Study string `json:"study"`
			Rows  struct {
				Number []int      `json:"number"`
				Value  []*float64 `json:"value"`
			} `json:"rows"`
		}
		if err := json.Unmarshal(unpack(t, w), &sent); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if sent.Study != "night" || len(sent.Rows.Number) != 4 || sent.Rows.Value[1] != nil || *sent.Rows.Value[2] != 2104 {
			t.Errorf("%s: %+v", name, sent)
		}
	}
	for path, want := range map[string]int{
		"/api/v1/studies/nobody/charts": 404, "/api/v1/studies/night/charts/best.csv": 200, "/api/v1/studies/night/charts/best": 404,
		"/api/v1/studies/night/charts/other.csv": 404, "/api/v1/studies/night/charts/..%2f..%2fserver.go.csv": 404,
		"/api/v1/studies/night/trials/2/charts": 200, "/api/v1/studies/night/trials/99/charts": 404, "/api/v1/studies/night/trials/x/charts": 404,
		"/api/v1/studies/night/trials/2/charts/life.csv": 200,
	} {
		if w := get(t, h, path); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	w := get(t, h, "/api/v1/studies/night/charts/best.csv")
	if got := w.Header().Get("Content-Disposition"); got != `attachment; filename="night-best.csv"` {
		t.Errorf("Content-Disposition %s", got)
	}
	if body := w.Body.String(); !strings.HasPrefix(body, "Trial,Outcome,output tok/s,") || !strings.Contains(body, "\n2,ok,2104,") {
		t.Errorf("CSV:\n%s", body)
	}
}

func TestChartsFollowTheStudy(t *testing.T) {
	t.Parallel()
	m := sample()
	m.studies[0].State = tuner.StudyComplete // a running one is drawn every few seconds
	h := web.New(m, web.Options{})
	before := get(t, h, "/api/v1/studies/night/charts").Body.String()
	m.trials["night"] = m.trials["night"][:2]
	if again := get(t, h, "/api/v1/studies/night/charts").Body.String(); again != before {
		t.Error("charts were built anew though the study has not changed")
	}
	m.touch()
	if after := get(t, h, "/api/v1/studies/night/charts").Body.String(); after == before {
		t.Error("the study has changed, its charts have not")
	}
	m.touch()
	m.broken = errors.New("disk")
	if w := get(t, h, "/api/v1/studies/night/charts"); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "disk") {
		t.Errorf("a broken store: %d %s", w.Code, w.Body)
	}
}

// TestEvidenceStaysInItsFolder gives a row whose folder points out of the evidence: nothing is read there.
func TestEvidenceStaysInItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := "[2026-01-01 22:00:05 TP0] Decode batch, #running-req: 7, #token: 10, token usage: 0.50, cuda graph: True, gen throughput (token/s): 55.5, #queue-req: 0, \n"
	for _, d := range []string{"files/night/2", "outside"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, d, "server.log"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for folder, want := range map[string]bool{"2": true, "../../outside": false, "..": false} {
		m := sample()
		m.trials["night"][2].Dir = folder
		m.trials["night"][2].StartedAt = night
		h := web.New(m, web.Options{Evidence: filepath.Join(dir, "files")})
		if body := get(t, h, "/api/v1/studies/night/trials/2/charts").Body.String(); strings.Contains(body, "55.5") != want {
			t.Errorf("folder %s: read %v, want %v: %s", folder, !want, want, body)
		}
	}
}

// TestEvidenceMayComeLater serves pages before the first trial has made the folder of evidence.
func TestEvidenceMayComeLater(t *testing.T) {
	t.Parallel()
	m := sample()
	m.trials["night"][2].Dir, m.trials["night"][2].StartedAt = "2", night
	folder := filepath.Join(t.TempDir(), "sgtune.files")
	h := web.New(m, web.Options{Evidence: folder})
	path := "/studies/night/trials/2/files/server.log"
	if w := get(t, h, path); w.Code != http.StatusNotFound {
		t.Errorf("before: %d", w.Code)
	}
	if err := os.MkdirAll(filepath.Join(folder, "night", "2"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "night", "2", "server.log"), []byte("fired up\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w := get(t, h, path); w.Code != http.StatusOK || w.Body.String() != "fired up\n" {
		t.Errorf("after: %d %s", w.Code, w.Body)
	}
}
