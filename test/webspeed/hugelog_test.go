package webspeed

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sgtune/trial"
)

// hugeLog opens a trial whose log has 2 GB: bytes of the page, and by how much the server's memory rose at most.
func (b *bed) hugeLog(t *testing.T) (html, grown float64) {
	t.Helper()
	const whole, evidence, written = 2 << 30, 1 << 20, 2 << 20 // of the log, of those the last bytes are text, with the evidence in their middle
	n := night(30)
	var failed *trial.Trial
	for _, each := range n.Trials {
		if each.Verdict.Outcome == trial.GPUOOM {
			failed = each
			break
		}
	}
	failed.Verdict.Line, failed.Verdict.Offset = 16_000_000, whole-written+evidence
	path := b.ours(t, "log", n)
	dir := filepath.Join(filepath.Dir(path), "sgtune.files", n.Record.Name, failed.Dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const each = "[2026-11-28 22:10:00 TP1] Decode batch, #running-req: 41, #token: 104431, token usage: 0.66, gen throughput (token/s): 1312.4\n"
	text := strings.Repeat(each, written/len(each))
	at := strings.LastIndex(text[:evidence], "\n") + 1
	text = "\n" + text[:at] + failed.Verdict.Evidence + "\n" + text[at:]
	file, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt([]byte(text), whole-int64(len(text))) // what lies before is a hole
	if closed := file.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}

	s := b.serveOurs(t, path)
	defer s.stop()
	at0 := s.url + "/studies/night/trials/"
	if _, _, err := fetch(t.Context(), at0+"0", io.Discard); err != nil { // one without a log, for what any page takes
		t.Fatal(err)
	}
	before := s.memory(t, "VmRSS")
	var page bytes.Buffer
	if _, _, err := fetch(t.Context(), fmt.Sprint(at0, failed.Number), &page); err != nil {
		t.Fatal(err)
	}
	if text := page.String(); !strings.Contains(text, `class="evidence`) || !strings.Contains(text, "gen throughput") {
		t.Fatal("the page does not show the log at its evidence")
	}
	return float64(page.Len()), max(0, s.memory(t, "VmHWM")-before)
}
