package benchmark

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDetectStuckScheduler: /server_info goes through the scheduler and may hang; the rest is answered.
func TestDetectStuckScheduler(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/server_info":
			<-r.Context().Done()
		case "/model_info":
			fmt.Fprint(w, `{"model_path":"/models/tiny","served_model_name":"tiny"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	got, err := detect(t.Context(), Target{URL: server.URL}, 200*time.Millisecond)
	want := Server{Kind: KindSGLang, Model: "tiny", Notes: []string{"GET /server_info was not answered within 200ms"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
