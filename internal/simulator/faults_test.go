package simulator

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The faults that make a monitor wrong.
func TestHealthFaults(t *testing.T) {
	t.Parallel()
	all := together{t: t}
	defer all.Wait()
	all.run("starting", func(t *testing.T) {
		p := launchProcess(t, nil, "--sim-fault", "health_starting").ready()
		if code, _ := p.do("GET", "/health", ""); code != 503 {
			t.Errorf("/health: %d, want 503", code)
		}
		p = launchProcess(t, nil, "--sim-fault", "health_starting:30")
		p.until("200", func() bool { code, _ := p.do("GET", "/health", ""); return code == 200 })
	})
	all.run("busy", func(t *testing.T) {
		p := launchProcess(t, nil, "--sim-fault", "busy_503,long_prefill:10").ready()
		p.until("200 once the warm-up is over", func() bool { code, _ := p.do("GET", "/health", ""); return code == 200 })
		done := make(chan string, 1)
		start := time.Now()
		go func() {
			_, text := p.do("POST", "/generate", `{"input_ids":[1,2,3],"sampling_params":{"max_new_tokens":3000,"ignore_eos":true}}`)
			done <- text
		}()
		p.until("503", func() bool { code, _ := p.do("GET", "/health", ""); return code == 503 })
		if text := <-done; !strings.Contains(text, `"completion_tokens":3000`) || time.Since(start) < 30*time.Second/300 {
			t.Errorf("after %s: %s", time.Since(start), text)
		}
		p.until("said in the log", func() bool {
			return strings.Contains(p.log(), "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.")
		})
	})
	all.run("no ready line", func(t *testing.T) {
		p := launchProcess(t, nil, "--sim-fault", "no_ready_line")
		p.until("200", func() bool { code, _ := p.do("GET", "/health", ""); return code == 200 })
		if strings.Contains(p.log(), "fired up") {
			t.Error("the ready line was printed")
		}
	})
	all.run("hang while loading", func(t *testing.T) {
		p := launchProcess(t, nil, "--sim-fault", "load_hang")
		p.until("half", func() bool { return strings.Contains(p.log(), "Completed | 32/64") })
		size := len(p.log())
		time.Sleep(200 * time.Millisecond) // 60 simulated seconds: the start would be over
		if len(p.log()) != size {
			t.Errorf("it went on:\n%s", tail(p.log()))
		}
	})
}

func TestParseFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, want string }{
		{"", ""},
		{" prefill_oom:30, ignore_term ", ""},
		{"hang,slow_load:5s", ""},
		{"nope", `unknown fault "nope"; known: load_oom slow_load:S`},
		{"slow_load", `write it as slow_load:S`},
		{"sticky:3", `write it as sticky`},
		{"hang:soon", `"soon" is not a number of seconds`},
		{"hang:-1", `"-1" is not a number of seconds`},
		{"hang:NaN", `is not a number of seconds`},
	} {
		if _, err := ParseFaults(c.spec); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.spec, err, c.want)
		}
	}
	h := newestDialect().helpText()
	for _, f := range faults {
		if !strings.Contains(h, "\n  "+f.spelling()) {
			t.Errorf("--help does not list %s", f.name)
		}
	}
}

// docs/simulator.md has a row for each fault, in the words of --help, and names each version.
func TestFaultsAreDocumented(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, f := range faults {
		row := fmt.Sprintf("| `%s` | %s |", f.spelling(), f.text)
		if !strings.Contains(strings.ReplaceAll(page, "`", ""), strings.ReplaceAll(row, "`", "")) {
			t.Errorf("docs/simulator.md lacks the row %s", row)
		}
	}
	for _, version := range Versions() {
		if !strings.Contains(page, " "+version+" ") {
			t.Errorf("docs/simulator.md does not name %s", version)
		}
	}
}
