package main

import (
	"context"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"sgtune/sglang"
	"sgtune/tuner"
	"sgtune/web"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	s := &tuner.Study{
		Server: sglang.Server{
			Command: []string{"sh", "-c", `exec env S3_SECRET=inline python3 -m sglang.launch_server --api-key 'of-command' "$@"`},
			Flags:   sglang.Config{"admin-api-key": 123456789.0, "tp-size": 8.0, "tokenizer-mode": "auto"},
			Env: map[string]string{
				"HF_TOKEN": "a", "X_PASSWORD": "b", "S3_KEY": "c", "A_SECRET": "d", "EMPTY_KEY": "", "NCCL_DEBUG": "INFO",
				"TOKENIZERS_PARALLELISM": "1", "NAMED_TOKEN": "${HF_TOKEN}",
			},
		},
		Baseline: sglang.Config{"env.WANDB_API_KEY": "of-baseline", "mem-fraction-static": 0.85},
	}
	environ := []string{"CI_JOB_TOKEN=inherited-token", "SHORT_KEY=short", "HOME=/home/example", "odd"}
	want := []string{"123456789", "a", "b", "c", "d", "inherited-token", "inline", "of-baseline", "of-command"}
	if diff := cmp.Diff(want, secrets(s, environ)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHideSecretsKeepsEveryLineInItsPlace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "finish.log")
	before := "earlier: sk-aaaabbbbcccc\n"
	text := "server_args=ServerArgs(api_key='hunter2hunter2', port=1)\nplain line\nword: opensesame.\r\nlast opensesame"
	if err := os.WriteFile(path, []byte(before+text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := hideSecrets(path, int64(len(before)), []string{"opensesame"}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := before + "server_args=ServerArgs(api_key='***', port=1)           \nplain line\nword: ***.       \r\nlast ***       "
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := hideSecrets(filepath.Join(t.TempDir(), "none"), 0, nil); err != nil {
		t.Errorf("a command that printed nothing: %v", err)
	}
}

// crawl DB FOLDER: writes every page and answer that links of the web page reach into the folder, as it is and
// with its entities resolved.
func crawl(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: crawl DB FOLDER")
	}
	folder := ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(folder, 0o700))
	db, err := openForReading(context.Background(), ts.MkAbs(args[0]))
	ts.Check(err)
	defer func() { _ = db.Close() }() // nothing was written
	pages := web.New(db, web.Options{Addr: web.DefaultAddr, DB: args[0], Log: slog.New(slog.DiscardHandler)})
	seen, todo := map[string]bool{}, []string{"/", "/metrics", "/api/v1/studies"}
	for len(todo) > 0 && len(seen) < 300 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		answer := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, path, nil)
		request.Host = web.DefaultAddr
		pages.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK {
			ts.Fatalf("%s answered %d", path, answer.Code)
		}
		text := answer.Body.String()
		name := filepath.Join(folder, fmt.Sprintf("%03d.txt", len(seen)))
		ts.Check(os.WriteFile(name, []byte(path+"\n"+text+"\n"+html.UnescapeString(text)), 0o600))
		for _, link := range links.FindAllStringSubmatch(text, -1) {
			if to := html.UnescapeString(link[1]); strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "/events") { // which never ends
				todo = append(todo, to)
			}
		}
	}
	if len(seen) < 5 {
		ts.Fatalf("only %d pages were found", len(seen))
	}
}

var links = regexp.MustCompile(`(?:href|src|action)="([^"#]+)`)
