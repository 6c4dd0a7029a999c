package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/internal/freeport"
	"sgtune/internal/hosttest"
)

// shortNight cuts the study to its baseline and adds lines to its file.
func shortNight(n func(name string) string, more string) func(string) string {
	return func(text string) string {
		text = strings.NewReplacer("budget: {trials: 7}", "budget: {trials: 1}", "confirm: {launches: 3}", "confirm: {launches: 1}").Replace(text)
		return text + fmt.Sprintf(more, n("before"), n("after"), n("told"))
	}
}

// TestFinishOverSSH: before: and after: run on the host, after: also when a later tune goes on after a kill -9, once, and
// the notification has its result.
func TestFinishOverSSH(t *testing.T) {
	need(t)
	at := func(name string) string { return bed("n-finish-" + name) }
	n := newNight(t, "finish", "gpu-host", shortNight(at, `before: [sh, -c, 'echo "$SSH_CONNECTION" >>%s']
after: [sh, -c, 'echo "$SSH_CONNECTION" >>%s']
finish: {notify: [{run: [sh, -c, "cat >%s"]}]}
`))
	first := n.Start()
	n.says(first, "what runs today")
	if err := first.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.Ended
	n.finish(n.Start())
	for name, want := range map[string]int{"before": 2, "after": 1} {
		b, err := os.ReadFile(at(name))
		lines := strings.Fields(strings.ReplaceAll(string(b), " ", "_"))
		if err != nil || len(lines) != want || !strings.HasPrefix(lines[0], "127.0.0.1_") {
			t.Errorf("%s ran as %q, %v", name, lines, err)
		}
	}
	var m struct{ Kind, After string }
	if b, err := os.ReadFile(at("told")); err != nil || json.Unmarshal(b, &m) != nil || m.Kind != "done" || !strings.HasPrefix(m.After, "after: ok: sh -c") {
		t.Errorf("told %+v, %v", m, err)
	}
}

// TestServerStaysOverSSH: the server that is launched at the end outlives sgtune and its link, is started again when it
// dies, is named by the next check, and the command that is told stops it.
func TestServerStaysOverSSH(t *testing.T) {
	need(t)
	port := freeport.For(t)
	const key = "open-sesame-4711"
	at := func(name string) string { return bed("n-stays-" + name) }
	edit := shortNight(at, `before: [touch, %s, %s]
finish: {launch: baseline, notify: [{run: [sh, -c, "cat >%s"]}]}
`)
	n := newNight(t, "stays", "gpu-host", func(text string) string {
		return strings.Replace(edit(text), "trust-remote-code: true}", fmt.Sprintf("trust-remote-code: true, port: %d, api-key: %s}", port, key), 1)
	})
	t.Cleanup(dismiss) // where the test did not
	n.finish(n.Start())
	told, err := os.ReadFile(at("told"))
	if err != nil || strings.Contains(string(told), key) {
		t.Fatalf("%v: %s", err, told)
	}
	word := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile(pattern).FindSubmatch(told)
		if m == nil {
			t.Fatalf("no %s in %s", pattern, told)
		}
		return string(m[1])
	}
	pid, stop := word(`launched the baseline: pid (\d+) on port \d+, ready: one token came`), word(`to stop it: ([^;]*);`)
	log, err := os.ReadFile(word(`log: gpu-host:([^;"]*)`))
	if err != nil || strings.Contains(string(log), key) || !strings.Contains(string(log), "fired up and ready") {
		t.Errorf("%v, log %.500s", err, log)
	}
	if err := testbed("drop"); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", "-9", pid).Run(); err != nil {
		t.Fatal(err)
	}
	n.until("a server again", func() bool {
		out, _ := exec.Command("pgrep", "-f", fmt.Sprintf("^%s sim-server.*--port %d$", n.Program, port)).Output()
		return len(out) > 0 && strings.TrimSpace(string(out)) != pid
	})
	cmd, out := n.Command("check", n.Path("study.yaml"), "--db", n.DB())
	_ = cmd.Run() // its answer is no, with exit 0
	if b, err := os.ReadFile(out); err != nil || !strings.Contains(string(b), fmt.Sprintf("the server on port %d that sgtune launched when study stays ended", port)) || !strings.Contains(string(b), "to stop it: "+stop) {
		t.Errorf("check says %v %s", err, b)
	}
	if out, err := exec.Command("sh", "-c", stop).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", stop, err, out)
	}
	n.until("no server", func() bool {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

// says waits for a text in what a run of the program prints.
func (n *night) says(r *hosttest.Tuning, text string) {
	n.T.Helper()
	n.until(text, func() bool { return strings.Contains(r.Text(), text) })
}

// until waits for something to be so.
func (n *night) until(what string, is func() bool) {
	n.T.Helper()
	for begin := time.Now(); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			n.T.Fatalf("never: %s", what)
		}
	}
}

// dismiss ends the keepers that lie in the testbed's folder.
func dismiss() {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		line, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err == nil && bytes.HasPrefix(line, []byte(bed("state"))) && bytes.Contains(line, []byte("/keeper\x00stay\x00")) {
			_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended just now
		}
	}
}
