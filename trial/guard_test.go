package trial_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/trial"
)

// TestNoRuleKnowsAFixture: whatever names a fixture (its file, its times, paths, models, processes, addresses,
// ports of clients) can be another, and the verdict stays. Lines that mean nothing may stand before and
// behind, and a container may prefix every line.
func TestNoRuleKnowsAFixture(t *testing.T) {
	t.Parallel()
	const step = 3 // of the many logs in "unseen" the fast tier takes one in three
	for i, path := range fixtures(t) {
		if testing.Short() && filepath.Base(filepath.Dir(path)) == "unseen" && i%step > 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".log"), func(t *testing.T) {
			t.Parallel()
			log, want := loadFixture(t, path)
			plain, err := diagnose(log, want.Context)
			if err != nil {
				t.Fatal(err)
			}
			const lead = "+ exec python3 serve.py\nwarming up the page cache\n"
			all := otherNames(otherYears(log))
			shift := 0
			if len(log) > 0 { // an empty log with lines is another log
				all = append(withNewline(append([]byte(lead), all...)), "+ date\nbye\n"...)
				shift = strings.Count(lead, "\n")
			}
			if !bytes.Contains(log, []byte("\r")) {
				all = prefixed(all, "2026-03-01T10:00:00.123456789Z ")
			}
			got, err := diagnose(all, want.Context)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := summary(got, shift), summary(plain, 0); a != b {
				t.Errorf("with all of that changed:\n%s\nwant\n%s", a, b)
			}
		})
	}
}

// summary is what must not change.
func summary(v trial.Verdict, shift int) string {
	line := v.Line
	if line > 0 {
		line -= shift
	}
	return fmt.Sprintf("%s / %s / %s, blames %s, line %d, advice %v, ranks %v, flags %v", v.Outcome, v.Phase, v.Cause, v.Blames, line, v.Advice, v.FailingRanks, v.RejectedFlags)
}

var (
	years     = regexp.MustCompile(`\b20(2\d)(-\d\d-\d\d[ T])`)
	someNames = regexp.MustCompile(`models/[\w.-]+`)
	addresses = regexp.MustCompile(`192\.0\.2\.(\d+)`)
	clients   = regexp.MustCompile(`(INFO: +127\.0\.0\.1):\d{5} - `)
	processes = regexp.MustCompile(`\b([Pp]id[= ])(\d{2,7})\b`)
	started   = regexp.MustCompile(`(Started server process \[)\d+`)
	packages  = regexp.MustCompile(`(File ")[^"]*?/(sglang/srt/|torch/|transformers/)`)
)

// otherYears moves every time by four years: a leap year stays one.
func otherYears(log []byte) []byte {
	return years.ReplaceAllFunc(log, func(m []byte) []byte {
		n, err := strconv.Atoi(string(m[2:4]))
		if err != nil {
			return m
		}
		return append([]byte(fmt.Sprintf("20%02d", n+4)), m[4:]...)
	})
}

func otherNames(log []byte) []byte {
	log = someNames.ReplaceAll(log, []byte("mnt/other-weights"))
	log = addresses.ReplaceAll(log, []byte("198.51.100.$1"))
	log = clients.ReplaceAll(log, []byte("$1:40404 - "))
	log = processes.ReplaceAll(log, []byte("${1}6$2"))
	log = started.ReplaceAll(log, []byte("${1}777"))
	return packages.ReplaceAll(log, []byte("${1}/elsewhere/env/lib/$2"))
}

func withNewline(log []byte) []byte {
	log = bytes.Clone(log)
	if len(log) > 0 && log[len(log)-1] != '\n' {
		log = append(log, '\n')
	}
	return log
}

func prefixed(log []byte, prefix string) []byte {
	var out []byte
	for line := range bytes.Lines(log) {
		out = append(append(out, prefix...), line...)
	}
	return out
}

// TestVerdictIsPure: the same inputs give the same verdict, in whatever pieces the log came.
func TestVerdictIsPure(t *testing.T) {
	t.Parallel()
	for _, path := range fixtures(t)[:4] {
		log, want := loadFixture(t, path)
		whole, err := diagnose(log, want.Context)
		if err != nil {
			t.Fatal(err)
		}
		c, err := trial.ParseContext(want.Context)
		if err != nil {
			t.Fatal(err)
		}
		reader := sglang.NewReader()
		for rest := log; len(rest) > 0; {
			n := min(7919, len(rest))
			reader.Feed(rest[:n])
			rest = rest[n:]
		}
		reader.Close()
		f := reader.Facts()
		a, errA := whole.JSON()
		b, errB := trial.Diagnose(f, f.First, f.Last, c).JSON()
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s:\n%s\nin pieces\n%s\n%v %v", path, a, b, errA, errB)
		}
	}
}
