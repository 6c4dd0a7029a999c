package sglang_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func TestRunArgs(t *testing.T) {
	t.Parallel()
	arg := func(name, value string, from, to int, words ...string) sglang.RunArg {
		return sglang.RunArg{Name: name, Value: value, Words: words, From: from, To: to}
	}
	for _, c := range []struct {
		line string
		want []sglang.RunArg
		rest int
	}{
		{"", nil, 0},
		{"image:1 -d", nil, 0},
		{"-d -- image", []sglang.RunArg{arg("--detach", "", 0, 1, "-d")}, 1},
		{"--gpus all --init image", []sglang.RunArg{arg("--gpus", "all", 0, 2, "--gpus", "all"), arg("--init", "", 2, 3, "--init")}, 3},
		{"--memory=4g -m4g -m=4g -m 4g", []sglang.RunArg{
			arg("--memory", "4g", 0, 1, "--memory=4g"), arg("--memory", "4g", 1, 2, "-m4g"), arg("--memory", "4g", 2, 3, "-m=4g"), arg("--memory", "4g", 3, 5, "-m", "4g"),
		}, 5},
		{"-itv /a:/b x", []sglang.RunArg{
			arg("--interactive", "", 0, 2, "-i"), arg("--tty", "", 0, 2, "-t"), arg("--volume", "/a:/b", 0, 2, "-v", "/a:/b"),
		}, 2},
		{"-dp80:80 x", []sglang.RunArg{arg("--detach", "", 0, 1, "-d"), arg("--publish", "80:80", 0, 1, "-p80:80")}, 1},
		{"--some-new-flag value --net=host", []sglang.RunArg{arg("--some-new-flag", "value", 0, 2, "--some-new-flag", "value"), arg("--network", "host", 2, 3, "--net=host")}, 3},
		{"--volume", []sglang.RunArg{arg("--volume", "", 0, 1, "--volume")}, 1},
		{"- x", nil, 0},
		{"-i- x", []sglang.RunArg{arg("-i-", "", 0, 1, "-i-")}, 1},
	} {
		got, rest := sglang.RunArgs(strings.Fields(c.line))
		if d := cmp.Diff(c.want, got); d != "" || rest != c.rest {
			t.Errorf("%q: rest %d, want %d (-want +got)\n%s", c.line, rest, c.rest, d)
		}
	}
}

func TestRefusedRunArgs(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"--rm": "removes the container itself", "-d": "in the background", "-p 80:80": "machine's own network", "--net bridge": "machine's own network",
		"--restart=always": "must stay dead", "-e SGTUNE_TRIAL=x": "names and labels", "-l sgtune.trial=x": "names and labels", "--log-driver none": "reads the log",
		"--network host": "", "--log-driver json-file": "", "-e NAME": "", "-l team=ml": "", "--gpus all": "", "--unheard-of x": "",
	} {
		args, _ := sglang.RunArgs(strings.Fields(line))
		if got := args[0].Refused(); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestRunBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"400g": 400 << 30, "64m": 64 << 20, "1.5G": 3 << 29, "10GiB": 10 << 30, "2gb": 2 << 30, "4096": 4096, "8k": 8 << 10, "0": 0,
		"": -1, "lots": -1, "-1": -1, "nan": -1, "inf": -1, "1e30g": -1, "999999999p": -1, "4x": -1,
	} {
		got, ok := sglang.RunBytes(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %d, %v", text, got, ok)
		}
	}
}

// FuzzRunArgs: whatever is written, each word belongs to one argument or to the rest.
func FuzzRunArgs(f *testing.F) {
	for _, line := range []string{"-itv /a:/b --gpus all image cmd", "-- x", "-e A=b --memory", "--=x -", "-i-"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		args, rest := sglang.RunArgs(words)
		at := 0
		for i, a := range args {
			if i > 0 && a.From == args[i-1].From { // the next of a cluster
				at = a.From
			}
			if a.From != at || a.To <= a.From || a.To > a.From+2 || len(a.Words) == 0 {
				t.Fatalf("%q: %+v at word %d", words, a, at)
			}
			_ = a.Refused()
			at = a.To
		}
		if rest != at || rest > len(words) {
			t.Fatalf("%q: the rest begins at %d, the arguments end at %d", words, rest, at)
		}
	})
}
