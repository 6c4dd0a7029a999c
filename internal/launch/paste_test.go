package launch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/internal/launch"
)

// TestPasted reads what people paste: terminal lines, README blocks, recipes of a Makefile.
func TestPasted(t *testing.T) {
	t.Parallel()
	const s = "python3 -m sglang.launch_server "
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"TP": "2"}[name]
		return value, ok
	}
	for _, c := range []struct {
		name, file, text string
		args             string // words joined by |
		line             int
	}{
		{"dollar prompt", "x.txt", "$ " + s + "--model-path /m \\\n>   --tp 8\n", "--model-path|/m|--tp|8", 1},
		{"shell prompt", "x.txt", "root@gpu01:/w# export A=1\nroot@gpu01:/w# " + s + "--model-path /m\n", "--model-path|/m", 2},
		{"prompt with an environment", "x.txt", "(sgl) [me@gpu01 ~]$ " + s + "--model-path /m\n", "--model-path|/m", 1},
		{"a comment is no prompt", "x.sh", "# " + s + "--model-path /no\n" + s + "--model-path /m\n", "--model-path|/m", 2},
		{"a redirection is no prompt", "x.sh", s + "--model-path /m \\\n> log --tp 8\n", "--model-path|/m|--tp|8", 1},
		{"readme", "README.md", "It's simple: run\n\n```python\ndef f(): return \"\"\"\n```\n\n```bash\n" + s + "--model-path /m\n```\nIsn't it?\n", "--model-path|/m", 8},
		{"block without an end", "x.md", "Title: x\n```\n$ " + s + "--model-path /m", "--model-path|/m", 3},
		{
			"first of two nodes", "x.md", "```\n" + s + "--model-path /m --dist-init-addr a:1 --nnodes 2 --node-rank 1\n" + s + "--model-path /m --dist-init-addr a:1 --nnodes 2 --node-rank 0\n```\n",
			"--model-path|/m|--dist-init-addr|a:1|--nnodes|2|--node-rank|0", 3,
		},
		{
			"makefile", "Makefile", "TP ?= 4\nBASE := /m # where\nMODEL = $(BASE)/x\nFLAGS := --a 1 \\\n  --b\nFLAGS += --c\n.PHONY: serve\nserve: deps\n\t@" + s + "--model-path $(MODEL) \\\n\t\t--tp ${TP} $(FLAGS) --d $$HOSTX\n",
			"--model-path|/m/x|--tp|2|--a|1|--b|--c|--d|${HOSTX}", 9,
		},
		{"makefile that calls itself", "rules.mk", "A = $(A)x\nrun:\n\t-" + s + "--model-path /m --x $(words a b)\n", "--model-path|/m|--x|$(words a b)", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			launches, err := launch.Read(c.file, []byte(c.text), launch.Options{Path: "/srv/llm/" + c.file, Lookup: lookup})
			if err != nil || len(launches) != 1 {
				t.Fatalf("%d launches, error %v: %+v", len(launches), err, launches)
			}
			if diff := cmp.Diff(strings.Split(c.args, "|"), launches[0].Args); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if launches[0].Line != c.line {
				t.Errorf("line %d, want %d", launches[0].Line, c.line)
			}
			if got := strings.Join(launches[0].Command, " "); got+" " != s {
				t.Errorf("command %q", got)
			}
		})
	}
}
