package launch_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/internal/launch"
)

// TestScripts shows what a shell would pass to SGLang, construct by construct.
func TestScripts(t *testing.T) {
	t.Parallel()
	const s = "python3 -m sglang.launch_server "
	for _, c := range []struct {
		name, script string
		args         string // words joined by |
	}{
		{"one line", s + "--model-path /m --tp 8", "--model-path|/m|--tp|8"},
		{"quotes", s + `--model-path '/m 1' --served-model-name "a \"b\" $HOME" --x 'it'\''s'`, `--model-path|/m 1|--served-model-name|a "b" /home/op|--x|it's`},
		{"defaults", "M=${M:-/m}\n" + s + `--model-path $M --tp ${TP-8} --port "${PORT:=30000}" --n $PORT`, "--model-path|/m|--tp|8|--port|30000|--n|30000"},
		{"alternative", "D=1\n" + s + "--model-path /m ${D:+--debug} ${E:+--never}", "--model-path|/m|--debug"},
		{"arithmetic", "N=2\n" + s + "--model-path /m --tp $((N * 4)) --port $((30000 + N))", "--model-path|/m|--tp|8|--port|30002"},
		{"word splitting", "A='--a 1  --b 2'\n" + s + `--model-path /m $A "$A"`, "--model-path|/m|--a|1|--b|2|--a 1  --b 2"},
		{"array", "A=(--a 1)\nA+=(--b '2 3')\n" + s + `--model-path /m "${A[@]}" ${#A[@]}`, "--model-path|/m|--a|1|--b|2 3|4"},
		{"appended text", "A=--a\nA+=' 1'\n" + s + "--model-path /m $A", "--model-path|/m|--a|1"},
		{"substrings", "M=/models/Qwen3-8B\n" + s + "--model-path $M --served-model-name ${M##*/} --x ${M%-8B} --y ${M/Qwen/Q}", "--model-path|/models/Qwen3-8B|--served-model-name|Qwen3-8B|--x|/models/Qwen3|--y|/models/Q3-8B"},
		{"brace list", s + "--model-path /m --cuda-graph-bs {1..3} 8", "--model-path|/m|--cuda-graph-bs|1|2|3|8"},
		{"no globbing", s + "--model-path /m/* --x [ab]", "--model-path|/m/*|--x|[ab]"},
		{"continuation and comment above", "# a comment\n\n" + s + "\\\n  --model-path /m \\\n  --tp 8 # eight\n", "--model-path|/m|--tp|8"},
		{"exported", "export M=/m TP=4\n" + s + "--model-path $M --tp $TP", "--model-path|/m|--tp|4"},
		{"unknown variable", s + "--model-path /m --tp $TP --dist-init-addr ${HEAD}:5000", "--model-path|/m|--tp|${TP}|--dist-init-addr|${HEAD}:5000"},
		{"unknown command", "T=$(nvidia-smi -L)\n" + s + "--model-path /m --tp $T --x a$(date)b", "--model-path|/m|--tp|$(nvidia-smi -L)|--x|a$(date)b"},
		{"which", "PY=$(which python3)\n$PY -m sglang.launch_server --model-path /m", "--model-path|/m"},
		{"backquotes", s + "--model-path `cat model.txt`", "--model-path|$(cat model.txt)"},
		{"script folder", "D=$(dirname \"$0\")\n" + s + "--model-path $D/m --x $(basename $D)", "--model-path|/srv/llm/m|--x|llm"},
		{"script argument", "M=$1\nT=${2:-8}\n" + s + "--model-path $M --tp $T", "--model-path|${1}|--tp|8"},
		{"script argument with a later default", "M=$1\nM=${M:-/d}\n" + s + "--model-path $M", "--model-path|/d"},
		{"positional", "set -- --a 1\n" + s + `--model-path /m "$@"`, "--model-path|/m|--a|1"},
		{"empty arrays", "A=()\n" + s + `--model-path /m "${A[@]}" "${B[@]}" "$@" $*`, "--model-path|/m"},
		{"if decided", "X=b\nif [ \"$X\" = a ]; then M=/a; elif [[ $X == b* ]]; then M=/b; else M=/c; fi\n" + s + "--model-path $M", "--model-path|/b"},
		{"if not set", "if [ -z \"$M\" ]; then M=/d; fi\n" + s + "--model-path $M", "--model-path|/d"},
		{"if unknown takes the first", "if nvidia-smi; then TP=8; else TP=4; fi\n" + s + "--model-path /m --tp $TP", "--model-path|/m|--tp|8"},
		{"and, or", "[ -n \"$X\" ] && A=--x\n[ -n \"$X\" ] || B=--y\n" + s + "--model-path /m $A $B", "--model-path|/m|${A}|--y"},
		{"case", "K=big\ncase $K in small) T=1;; b*) T=8;; esac\n" + s + "--model-path /m --tp $T", "--model-path|/m|--tp|8"},
		{"function", "serve() { " + s + "--model-path \"$1\" --tp $2; }\nserve /m 4", "--model-path|/m|--tp|4"},
		{"option loop", "TP=8\nwhile [[ $# -gt 0 ]]; do case $1 in --tp) TP=$2; shift 2;; esac; done\n" + s + "--model-path /m --tp $TP", "--model-path|/m|--tp|8"},
		{"counted loop", "for ((i=0; i<1; i++)); do " + s + "--model-path /m --port $((30000+i)); done", "--model-path|/m|--port|30000"},
		{"command in a variable", "CMD='python3 -m sglang.launch_server --model-path /m'\n$CMD --tp 2", "--model-path|/m|--tp|2"},
		{"command in an array", "C=(python3 -m sglang.launch_server --model-path '/m 1')\n\"${C[@]}\" --tp 2", "--model-path|/m 1|--tp|2"},
		{"eval", "C='" + s + "--model-path /m'\neval \"$C --tp 2\"", "--model-path|/m|--tp|2"},
		{"bash -c", "bash -lc 'cd / && " + s + "--model-path /m --tp 2'", "--model-path|/m|--tp|2"},
		{"tmux", "tmux new-session -d -s llm 'source /v/bin/activate; " + s + "--model-path /m'", "--model-path|/m"},
		{"heredoc beside it", "cat > f <<EOF2\n" + s + "--model-path /not-this\nEOF2\n" + s + "--model-path /m", "--model-path|/m"},
		{"pipe and redirect", s + "--model-path /m 2>&1 | tee log", "--model-path|/m"},
		{"json", s + `--model-path /m --json-model-override-args "{\"a\": {\"b\": [1, 2]}}"`, `--model-path|/m|--json-model-override-args|{"a": {"b": [1, 2]}}`},
		{"windows line ends", s + "\\\r\n --model-path /m \\\r\n --tp 8\r\n", "--model-path|/m|--tp|8"},
		{"docker entry point", "docker run --gpus all --entrypoint python3 img:1 -m sglang.launch_server --model-path /m", "--model-path|/m"},
		{"docker with the image's own", "docker run -it -p 1:1 --gpus '\"device=0,1\"' lmsysorg/sglang:latest --model-path /m --tp 2", "--model-path|/m|--tp|2"},
		{"docker shell", `docker run -dp 1:1 -eA=1 -v /a:/a --privileged img sh -c "` + s + `--model-path /m"`, "--model-path|/m"},
		{"apptainer", "apptainer exec --nv --bind /data:/data sglang.sif " + s + "--model-path /data/m", "--model-path|/data/m"},
		{"interpreter options", "/v/bin/python3.12 -u -X faulthandler -m sglang.launch_server --model-path /m", "--model-path|/m"},
		{"module serve", "python -m sglang serve /m --tp 2", "--model-path|/m|--tp|2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			launches := script(t, c.script)
			if len(launches) != 1 {
				t.Fatalf("%d launches: %+v", len(launches), launches)
			}
			if diff := cmp.Diff(strings.Split(c.args, "|"), launches[0].Args); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func script(t *testing.T, text string) []launch.Launch {
	t.Helper()
	launches, err := launch.Read("run.sh", []byte(text), launch.Options{Path: "/srv/llm/run.sh", Lookup: outside})
	if err != nil {
		t.Fatal(err)
	}
	return launches
}

func TestScriptEnvironmentAndPlace(t *testing.T) {
	t.Parallel()
	l := script(t, "cd /srv/x\nA=unseen\nexport B=2\nset -a\nC=3\nset +a\nsource .venv/bin/activate\nD=4 env E=5 nohup python -m sglang.launch_server --model-path ./m &\n")[0]
	want := launch.Launch{
		Kind: launch.KindScript, Line: 8, Dir: "/srv/x", Command: []string{"/srv/x/.venv/bin/python", "-m", "sglang.launch_server"}, Args: []string{"--model-path", "./m"},
		Env:   map[string]string{"B": "2", "C": "3", "D": "4", "E": "5"},
		Notes: []string{"Left out before the command: nohup. sgtune starts the server itself, keeps its log and must be able to stop it."},
	}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestACommentEndsTheCommand: what comes after it never reaches SGLang, and that is said.
func TestACommentEndsTheCommand(t *testing.T) {
	t.Parallel()
	l := script(t, "python -m sglang.launch_server --model-path /m \\\n  # --tp 8 \\\n  --dp 2\n")[0]
	if !slices.Equal(l.Args, []string{"--model-path", "/m"}) {
		t.Errorf("arguments %q: the shell ends the command at the comment", l.Args)
	}
	if !slices.ContainsFunc(l.Notes, func(n string) bool {
		return strings.Contains(n, "--dp 2") && strings.Contains(n, "line 3") || strings.Contains(n, "Line 3")
	}) {
		t.Errorf("notes %q: nobody learns that --dp 2 is lost", l.Notes)
	}
}

func TestBothBranchesAreDoubted(t *testing.T) {
	t.Parallel()
	l := script(t, "if nvidia-smi; then TP=16; else TP=4; fi\npython -m sglang.launch_server --model-path /m --tp $TP\n")[0]
	if !slices.ContainsFunc(l.Notes, func(n string) bool { return strings.Contains(n, "$TP") && strings.Contains(n, "line 1") }) {
		t.Errorf("notes %q", l.Notes)
	}
}

func TestWhatIsNoLaunch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, path, source, want string }{
		{"nothing", "a.sh", "  \n", "is empty"},
		{"another program", "a.sh", "#!/bin/sh\nvllm serve /m --tensor-parallel-size 8\n", "starts no SGLang server"},
		{"the benchmark", "a.sh", "python -m sglang.bench_serving --model /m\n", "starts no SGLang server"},
		{"the router", "a.sh", "python -m sglang_router.launch_router --port 1\n", "starts no SGLang server"},
		{"broken shell", "a.sh", "if [ x\npython -m sglang.launch_server\n", "syntax error"},
		{"broken yaml", "a.yaml", "services:\n  a: [\n", "not readable as YAML"},
		{"some yaml", "a.yaml", "alpha: 1\nbeta: 2\n", "starts no SGLang server"},
		{"compose without it", "a.yaml", "services:\n  web:\n    image: nginx\n", "starts no SGLang server"},
		{"a study", "a.yaml", "study: x\nserver: {model: m}\nspace: {}\n", "is a study file already"},
		{"no text", "a.bin", "\x00\x01\xff", "is no text"},
		{"huge", "a.sh", strings.Repeat("echo hello\n", 40_000), "more than a launch script"},
		{"aliases of aliases", "a.yaml", "a: &a [1,1,1,1,1,1,1,1,1]\n" + bomb(), "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			launches, err := launch.Read(c.path, []byte(c.source), launch.Options{Path: "/x/" + c.path})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", launches, err, c.want)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), c.path) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("not one line that names the file: %v", err)
			}
		})
	}
}

// bomb is YAML whose aliases unfold to 9^9 items.
func bomb() string {
	var b strings.Builder
	for c := 'b'; c <= 'j'; c++ {
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ",") + "]\n")
	}
	return b.String()
}

// TestHostileScripts ends in time and memory.
func TestHostileScripts(t *testing.T) {
	t.Parallel()
	const serve = "\npython -m sglang.launch_server --model-path /m --x \"$a\"\n"
	for name, text := range map[string]string{
		"doubling":  "a=xxxxxxxxxxxxxxxx\n" + strings.Repeat("a=$a$a\n", 60) + serve,
		"braces":    "a=1\necho {1..999999999}{1..999999999}" + serve,
		"replacing": "a=xxxxxxxxxxxxxxxx\n" + strings.Repeat("a=${a//x/xxxxxxxx}\n", 60) + serve,
		"recursion": "f() { f; g; }\ng() { f; f; }\nf\na=1" + serve,
		"loops":     strings.Repeat("for i in 1 2 3 4 5 6 7 8 9 10; do ", 12) + "a=1" + strings.Repeat("; done", 12) + serve,
		"nesting":   strings.Repeat("( ", 2000) + "a=1" + strings.Repeat(" )", 2000) + serve,
		"counting":  "for ((i=0;;)); do a=1; done" + serve,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			_, _ = launch.Read("a.sh", []byte(text), launch.Options{Path: "/x/a.sh"}) // any answer is good, in time
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("took %s", d)
			}
		})
	}
}

func FuzzScript(f *testing.F) {
	entries, err := os.ReadDir("testdata/launches")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		source, err := os.ReadFile("testdata/launches/" + e.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e.Name(), source)
	}
	f.Fuzz(func(t *testing.T, name string, source []byte) {
		hung := time.AfterFunc(20*time.Second, func() { panic("a source of " + strconv.Itoa(len(source)) + " bytes takes more than 20 s") })
		defer hung.Stop()
		launches, err := launch.Read(name, source, launch.Options{Path: "/x/" + name, Lookup: outside})
		if err != nil {
			return
		}
		for _, l := range launches {
			var b strings.Builder
			if err := launch.NewPlan(l, launch.PlanOptions{From: name}).WriteStudy(&b); err != nil {
				t.Fatal(err)
			}
		}
	})
}
