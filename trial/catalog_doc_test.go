package trial_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/trial"
)

var update = flag.Bool("update", false, "rewrite the documentation that is produced from this package's tables")

const failuresDoc = "../docs/failures.md"

// TestFailuresDoc holds docs/failures.md against the catalog; make docs writes it.
func TestFailuresDoc(t *testing.T) {
	t.Parallel()
	want := renderFailures(t)
	if *update {
		if err := os.WriteFile(failuresDoc, []byte(want), 0o644); err != nil { //nolint:gosec // a document for everybody
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(failuresDoc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/failures.md is stale; run make docs (-table +file):\n%s", diff)
	}
}

const failuresIntro = `# What a verdict means, and what to do

<!-- Produced from trial/catalog*.go by "make docs". Change it there. -->

` + "`sgtune diagnose LOG`" + ` and every trial of a study end with three words: the **outcome** (how it ended), the **phase** (where the server
was in its life) and the **cause**. This page has every outcome and cause with what it means, what to do and, where a log can show it, what it
looks like. Each example is a test: sgtune reads it and must find exactly the entry it stands under. Figures and addresses are made up.

A log cannot know everything. Facts from outside go into a JSON file, ` + "`sgtune diagnose LOG --context FILE`" + `:

| key | meaning |
| --- | --- |
| ` + "`alive`" + ` | does the process still run? |
| ` + "`exit_code`" + ` | of the server process; negative for a signal (a shell's 137 is -9) |
| ` + "`elapsed_s`, `ready_timeout_s`" + ` | seconds since the launch, and the limit for becoming ready |
| ` + "`log_silent_s`" + ` | seconds since the log last grew |
| ` + "`kernel_oom_kills`, `cgroup_oom_kills`" + ` | how often the kernel killed for want of memory meanwhile (` + "`dmesg -T`, `memory.events`" + `) |
| ` + "`host_ram_gb`, `cgroup_limit_gb`" + ` | memory of the host, limit of the container, in GB (10^9 bytes) |
| ` + "`flags`, `env`" + ` | of the launch, as an object |
| ` + "`probes`" + ` | what a health probe saw: a list of ` + "`path`, `status` (a number, `\"refused\"`, `\"timeout\"`), `count`, `from`" + ` |
| ` + "`nnodes`, `node_rank`, `executor`" + ` | of a server on several machines; how it was started |
| ` + "`quality`, `workload`, `control`" + ` | what a quality gate, a load generator and a comparison run gave |
| ` + "`stopped_by`" + ` | who stopped it, in words |

"To blame" says whether the search may learn from it: *yes*, the result is about the configuration; *no*, the configuration is innocent and
can run again; *partly*, run it once more to see.

`

func renderFailures(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(failuresIntro)
	b.WriteString("| outcome | causes |\n| --- | --- |\n")
	for _, o := range trial.Outcomes {
		links := make([]string, len(trial.Causes[o]))
		for i, c := range trial.Causes[o] {
			links[i] = fmt.Sprintf("[%s](#%s)", c, trial.Anchor(o, c))
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", o, o, strings.Join(links, ", "))
	}
	var outcome trial.Outcome
	for _, e := range trial.Catalog() {
		if e.Outcome != outcome {
			outcome = e.Outcome
			fmt.Fprintf(&b, "\n<a id=%q></a>\n\n## %s\n\n%s\n", string(outcome), outcome, trial.OutcomeMeaning(outcome))
		}
		renderEntry(t, &b, e)
	}
	b.WriteString("\n## Advice\n\n| code | what it says |\n| --- | --- |\n")
	for _, code := range trial.AdviceCodes {
		fmt.Fprintf(&b, "| `%s` | %s |\n", code, trial.AdviceText(code))
	}
	return b.String()
}

func renderEntry(t *testing.T, b *strings.Builder, e trial.Entry) {
	t.Helper()
	fmt.Fprintf(b, "\n<a id=%q></a>\n\n### %s / %s\n\n", trial.Anchor(e.Outcome, e.Cause), e.Outcome, e.Cause)
	if e.Meaning != trial.OutcomeMeaning(e.Outcome) {
		fmt.Fprintf(b, "%s ", e.Meaning)
	}
	fmt.Fprintf(b, "To blame: %s.\n", e.Blames)
	if e.Remedy != "" {
		fmt.Fprintf(b, "\n**What to do.** %s\n", e.Remedy)
	}
	if e.Example.Log == "" {
		fmt.Fprintf(b, "\nNo log shows it: %s.\n", e.Example.Live)
		return
	}
	v := diagnoseExample(t, e.Example)
	if len(v.Advice) > 0 {
		b.WriteString("\n")
		for i, code := range v.Advice {
			fmt.Fprintf(b, "%d. %s (`%s`)\n", i+1, trial.AdviceText(code), code)
		}
	}
	fmt.Fprintf(b, "\nAn example of SGLang %s:\n\n```text\n", e.Example.Version)
	lines := strings.Split(strings.TrimSuffix(e.Example.Log, "\n"), "\n")
	const shown = 6 // lines before the evidence, the rest is the start-up
	from := max(0, min(v.Line-1, len(lines))-shown)
	if from > 0 {
		b.WriteString("...\n")
	}
	b.WriteString(strings.Join(lines[from:], "\n") + "\n```\n")
	if e.Example.Context != "" {
		fmt.Fprintf(b, "\nwith the context `%s`: `%s / %s / %s`", e.Example.Context, v.Outcome, v.Phase, v.Cause)
	} else {
		fmt.Fprintf(b, "\nwithout any context: `%s / %s / %s`", v.Outcome, v.Phase, v.Cause)
	}
	if v.Line > 0 {
		fmt.Fprintf(b, ", by the line\n\n```text\n%s\n```\n", v.Evidence)
		return
	}
	b.WriteString(".\n")
}
