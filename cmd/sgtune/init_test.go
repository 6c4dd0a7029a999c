package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestInitFromACommandLine: docker run, as it is typed, becomes a study with a container; no output shows its secret.
func TestInitFromACommandLine(t *testing.T) {
	t.Parallel()
	const line = "docker run -d --rm --gpus all -v ./models:/models -e HF_TOKEN=hf_abcdefghijklmnop lmsysorg/sglang:v0.5.9 python3 -m sglang.launch_server --model-path /models/m"
	var out, said bytes.Buffer
	cmd := newInitCommand()
	cmd.SetArgs([]string{"--from", line})
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"from a command line. Its", "runtime: docker", `image: "lmsysorg/sglang:v0.5.9"`, "-e, HF_TOKEN", "/cmd/sgtune/models:/models"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if !strings.Contains(said.String(), "Read a command line: model /models/m") || strings.Contains(out.String()+said.String(), "hf_abc") {
		t.Errorf("%s\n%s", said.String(), out.String())
	}
	cmd = newInitCommand()
	cmd.SetArgs([]string{"--from", "my launch.sh"})
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "no file has this name") {
		t.Errorf("a file that is not there: %v", err)
	}
}
