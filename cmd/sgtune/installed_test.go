package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/tuner"
)

// fakeServer answers for an installed SGLang: a --help, and a version unless it has none.
func fakeServer(t *testing.T, help, version string) (ask asker, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	return func(_ context.Context, argv []string, env map[string]string) (string, error) {
		last := argv[len(argv)-1]
		*asked = append(*asked, last)
		switch {
		case env["HF_HOME"] != "/models":
			return "", errors.New("asked without the study's environment")
		case last == "--help" && help != "":
			b, err := os.ReadFile(filepath.Join("..", "..", "sglang", "testdata", "help", help+".txt"))
			return string(b), err
		case strings.Contains(strings.Join(argv, " "), "_version.py") && version != "":
			return "sglang version: " + version + "\n", nil
		}
		return "", errors.New("exit status 1")
	}, asked
}

func TestFindInstalled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, help, version string
		command             string
		want, text, err     string
	}{
		{
			name: "both agree", help: "0.5.23", version: "0.5.23", command: "python3 -m sglang.launch_server",
			want: "0.5.23", text: "SGLang 0.5.23, as it says itself; its --help lists 557 option names, exactly those of the release",
		},
		{
			name: "a build after a release", help: "0.5.23", version: "0.5.24rc1+cu129", command: "python3 -m sglang.launch_server",
			want: "0.5.24.dev", text: "SGLang 0.5.24rc1+cu129, as it says itself; its --help lists 557 option names, exactly those of 0.5.23",
		},
		{
			name: "a script hides the version", help: "0.4.9.post6", command: "./serve.sh",
			want: "0.4.9.post6", text: "SGLang 0.4.9.post6, told by its options alone; its --help lists 186 option names, exactly those of 0.4.9.post6",
		},
		{
			name: "built without tags", help: "0.5.23", version: "0.0.0.dev0", command: "sglang serve",
			want: "0.5.23", text: "told by its options alone",
		},
		{
			name: "no help", version: "0.5.9", command: "python3 -m sglang.launch_server",
			want: "0.5.9", text: "SGLang 0.5.9, as it says itself", err: "exit status 1",
		},
		{name: "nothing", command: "./serve.sh", want: "0.0.0", err: "exit status 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ask, _ := fakeServer(t, tt.help, tt.version)
			in, err := findInstalled(t.Context(), ask, strings.Fields(tt.command), map[string]string{"HF_HOME": "/models"})
			if in.Version.String() != tt.want || !strings.Contains(in.Text, tt.text) {
				t.Errorf("%s: %q, want %s: %q", in.Version, in.Text, tt.want, tt.text)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

// A launch waits for --help only where the version cannot be told otherwise and matters.
func TestQuickInstalled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, help, version string
		command             string
		flags               sglang.Config
		want                string
		asks                int // commands run
	}{
		{name: "says itself", help: "0.5.23", version: "0.5.23", command: "python3 -m sglang.launch_server", want: "0.5.23", asks: 1},
		{name: "does not matter", help: "0.5.23", command: "./serve.sh", flags: sglang.Config{"tp-size": 8.0}, want: "0.0.0"},
		{name: "matters", help: "0.4.9.post6", command: "./serve.sh", flags: sglang.Config{"cuda-graph-max-bs": 8.0}, want: "0.4.9.post6", asks: 1},
		{name: "a flag the release lacks", help: "0.5.23", version: "0.5.20", command: "python3 -m sglang.launch_server", flags: sglang.Config{"attn-dp-size": 2.0}, want: "0.5.20", asks: 3},
		{name: "simulated", command: "", want: "0.5.23"},
		{name: "simulated, asked for", command: "", flags: sglang.Config{"sim-version": "0.5.10"}, want: "0.5.10"},
		{name: "simulated by command", command: "sgtune sim-server --sim-version 0.4.9", want: "0.4.9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ask, asked := fakeServer(t, tt.help, tt.version)
			s := &tuner.Study{Server: sglang.Server{Command: strings.Fields(tt.command), Flags: tt.flags, Env: map[string]string{"HF_HOME": "/models"}}}
			in := quickInstalled(t.Context(), ask, s)
			if in.Version.String() != tt.want || len(*asked) != tt.asks {
				t.Errorf("%s after %q; want %s after %d", in.Version, *asked, tt.want, tt.asks)
			}
		})
	}
}

func TestAskHere(t *testing.T) {
	t.Parallel()
	out, err := askHere(t.Context(), []string{"sh", "-c", `printf %s "$GREETING"; exit 3`}, map[string]string{"GREETING": "hello"})
	if out != "hello" || err == nil || whyNoHelp(err) != "ended with exit status 3" {
		t.Errorf("%q, %v", out, err)
	}
}
