package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sgtune/trial"
	"sgtune/web"
)

// slowWalk is a Reader whose trials are read for its charts only once it is released.
type slowWalk struct {
	*memory
	release chan struct{}
	err     error
}

func (s *slowWalk) WalkTrials(ctx context.Context, study string, visit func(*trial.Trial) error) error {
	select {
	case <-s.release:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, t := range s.trials[study] {
		if err := visit(t); err != nil {
			return err
		}
	}
	return s.err
}

// TestVerdictComesBeforeCharts reads a study's page while its charts are being made: the verdict is there already.
func TestVerdictComesBeforeCharts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err        error
		want, none string
	}{
		"charts":         {nil, `data-chart="best"`, "could not be made"},
		"charts missing": {errors.New("disk"), "The charts could not be made.", `data-chart="best"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &slowWalk{sample(), make(chan struct{}), tt.err}
			server := httptest.NewServer(web.New(s, web.Options{}))
			t.Cleanup(server.Close)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/studies/night", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = answer.Body.Close() })
			late := time.AfterFunc(20*time.Second, func() { close(s.release) }) // so that a failure ends
			head := make([]byte, 0, 64<<10)
			for !strings.Contains(string(head), "What failed and why") {
				n, err := answer.Body.Read(head[len(head):cap(head)])
				if head = head[:len(head)+n]; err != nil {
					t.Fatalf("%v after %s", err, head)
				}
			}
			if !late.Stop() {
				t.Fatal("the verdict waited for the charts")
			}
			if text := string(head); !strings.Contains(text, "RUNNING") || strings.Contains(text, "chart") {
				t.Errorf("first: %s", bare(text))
			}
			close(s.release)
			rest, err := io.ReadAll(answer.Body)
			if text := string(rest); err != nil || !strings.Contains(text, tt.want) || strings.Contains(text, tt.none) || !strings.HasSuffix(text, "</html>\n") {
				t.Errorf("then: %v %s", err, bare(text))
			}
		})
	}
}
