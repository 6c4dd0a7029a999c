package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/tuner"
)

func TestHelpCommandHasNoPort(t *testing.T) {
	t.Parallel()
	got := withoutPort([]string{"-m", "x", "--port", "{port}", "--url=h:{port}", "y"})
	if diff := cmp.Diff([]string{"-m", "x", "y"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHelpOfWhatCannotRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		command []string
		note    string
		against string
	}{
		{name: "missing", command: []string{"/nowhere/serve"}, against: "/nowhere/serve, which cannot be run here (no such file or directory)"},
		{name: "no help", command: []string{"/bin/true"}, note: "/bin/true --help printed no list of options"},
		{name: "failing", command: []string{"/bin/false"}, note: "/bin/false --help ended with exit status 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var in tuner.CheckInput
			checkFlags(t.Context(), askHere, &tuner.Study{Server: sglang.Server{Command: tt.command}}, &in)
			if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
			if against := strings.Join(in.Against, "\n"); !strings.Contains(against, tt.against) {
				t.Errorf("against %q, want %q", against, tt.against)
			}
		})
	}
}

func TestPrintCheckEndsWithTheAnswer(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := printCheck(&out, &tuner.Report{
		Study: "s", Simulated: true, Verdict: "Ready to leave alone: no, because x",
		Space: tuner.SpaceReport{Configurations: 10, Admitted: 4, Exact: true, LeftOut: []string{"rule quality: fp8_e4m3"}, Excluded: []tuner.RuleReport{
			{Rule: "host RAM", Configurations: 6, Example: sglang.Config{"hicache-size": 56.0}, Text: "448.0 GB"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if lines[len(lines)-1] != "Ready to leave alone: no, because x" {
		t.Errorf("last line %q", lines[len(lines)-1])
	}
	for _, want := range []string{"s   SIMULATED", "10 in the space, 4 admitted", `6 excluded by rule "host RAM", such as hicache-size 56:`, "448.0 GB", "fp8_e4m3"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
