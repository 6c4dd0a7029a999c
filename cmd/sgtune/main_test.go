package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary act as sgtune: as the command of the scripts, and as the servers and
// the GPU probe that sgtune starts from its own executable (their argv[0] is not always sgtune).
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"sim-server", "nvml-probe", "guard", "stay"}, os.Args[1]) {
		main()
		return
	}
	testscript.Main(m, map[string]func(){"sgtune": pretended, "sgtune-agent": agentMain})
}

// TestScript runs the command line as a person does; each script under testdata/script is one story.
// The files of testdata/study lie in every script's folder.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state")) // leases
			e.Setenv("GORACE", "atexit_sleep_ms=0")                       // else each command takes a second more under -race
			return os.CopyFS(e.WorkDir, os.DirFS("testdata/study"))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "study": study, "simserver": simServer, "lines": countLines, "quiet": quiet, "jsonlines": jsonLines, "nowhere": nowhere, "edit": edit, "readable": readable, "crawl": crawl,
		},
	})
}

// exits CODE command...: runs the command, whose exit code must be CODE.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitOf(ts, args[1:]); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func exitOf(ts *testscript.TestScript, command []string) int {
	err := ts.Exec(command[0], command[1:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	return 0
}

// oneStudy lets one study run at a time: their times are simulated, the CPU is not.
var oneStudy sync.Mutex

// disturbed finds trials that a machine too busy for simulated time has spoilt: the client was late, or
// the server so slow that the trial was given up.
var disturbed = regexp.MustCompile(`trial \d+ (failed|stopped early|ran, but)`)

// study CODE FILE [flags...]: exits CODE sgtune tune FILE --web off. A disturbed study is run anew from
// nothing.
func study(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: study CODE FILE [flags...]")
	}
	oneStudy.Lock()
	defer oneStudy.Unlock()
	for try := 1; ; try++ {
		code := exitOf(ts, append([]string{"sgtune", "tune", "--web", "off"}, args[1:]...))
		switch busy := disturbed.MatchString(ts.ReadFile("stdout")); {
		case !busy && strconv.Itoa(code) == args[0]:
			return
		case !busy:
			ts.Fatalf("exit code %d, want %s", code, args[0])
		case try == 8:
			ts.Fatalf("a trial was disturbed in each of %d runs", try)
		}
		for _, left := range []string{"sgtune.db", "sgtune.db-wal", "sgtune.db-shm", "sgtune.files"} {
			ts.Check(os.RemoveAll(ts.MkAbs(left)))
		}
	}
}

// lines stdout|stderr|FILE N: the text has N lines of at most 400 characters.
func countLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines stdout|stderr|FILE N")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := ts.ReadFile(args[0])
	if got := strings.Count(text, "\n"); got != want {
		ts.Fatalf("%s has %d lines, want %d", args[0], got, want)
	}
	for line := range strings.Lines(text) {
		if len(line) > 400 {
			ts.Fatalf("%s has a line of %d characters", args[0], len(line))
		}
	}
}

// quiet is "! stderr ." for a load that was really sent: a machine with no processor to spare may
// make the load generator late, and then it must say so. Nothing else is allowed.
func quiet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: quiet")
	}
	for line := range strings.Lines(ts.ReadFile("stderr")) {
		if !strings.HasPrefix(line, "sgtune replay: NOT VALID (client_limited): ") {
			ts.Fatalf("on stderr: %s", line)
		}
	}
}

// jsonlines stdout: each line is a JSON object with a kind.
func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: jsonlines stdout")
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var event struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil || event.Kind == "" {
			ts.Fatalf("no event (%v): %s", err, line)
		}
	}
}

// nowhere TEXT [FILE...]: no file of the script's folder holds TEXT, the named ones left out, and
// neither does what was printed last.
func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: nowhere TEXT [FILE...]")
	}
	for _, stream := range []string{"stdout", "stderr"} {
		if strings.Contains(ts.ReadFile(stream), args[0]) {
			ts.Fatalf("%s holds %s", stream, args[0])
		}
	}
	root, looked := ts.MkAbs("."), 0
	ts.Check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || slices.Contains(args[1:], rel) {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(args[0])) {
			ts.Fatalf("%s holds %s", rel, args[0])
		}
		looked++
		return err
	}))
	if looked < 5 {
		ts.Fatalf("only %d files were looked at", looked)
	}
}

// edit FILE OLD NEW OUT: writes OUT, which is FILE with the only OLD replaced by NEW.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: edit FILE OLD NEW OUT")
	}
	text := ts.ReadFile(args[0])
	if n := strings.Count(text, args[1]); n != 1 {
		ts.Fatalf("%s holds %q %d times", args[0], args[1], n)
	}
	text = strings.Replace(text, args[1], strings.ReplaceAll(args[2], `\n`, "\n"), 1)
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), []byte(text), 0o600))
}

// readable stdout: what was printed holds nothing that steers a terminal.
func readable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: readable stdout")
	}
	if text := ts.ReadFile(args[0]); strings.ContainsAny(text, "\x1b\r\a\b") {
		ts.Fatalf("%s steers the terminal: %q", args[0], text)
	}
}
