package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sgtune/sglang"
	"sgtune/tuner"
)

// TestAskInside: a question has a container of its own, which is removed also when the question took too long.
func TestAskInside(t *testing.T) {
	t.Parallel()
	c := &sglang.Container{Runtime: "docker", Image: "i:1", Args: []string{"--gpus", "all"}}
	ctx, cancel := context.WithCancel(t.Context())
	var asked [][]string
	ask := func(_ context.Context, argv []string, env map[string]string) (string, error) {
		asked = append(asked, slices.Clone(argv))
		if len(asked) == 2 {
			cancel()
			return "", context.Canceled
		}
		if argv[1] == "run" && env["HF_TOKEN"] != "sesame9" {
			t.Errorf("the variable did not arrive: %v", env)
		}
		return "0.5.5", nil
	}
	vars := map[string]string{"HF_TOKEN": "sesame9"}
	inside := askInside(c, ask)
	if out, err := inside(ctx, []string{"python3", "-c", "x"}, vars); out != "0.5.5" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := inside(ctx, []string{"python3", "--help"}, vars); err == nil {
		t.Error("a question without an answer is no error")
	}
	if len(asked) != 3 {
		t.Fatalf("asked %q", asked)
	}
	words := strings.Join(asked[0], " ")
	if !strings.HasPrefix(words, "docker run --rm --name sgtune-ask-") || !strings.HasSuffix(words, "--pull never --network host --gpus all -e HF_TOKEN i:1 python3 -c x") {
		t.Errorf("asked %s", words)
	}
	if name := asked[1][4]; !slices.Equal(asked[2], []string{"docker", "rm", "-f", name}) || name == asked[0][4] {
		t.Errorf("the container of a question that took too long: %q, removed by %q", name, asked[2])
	}
}

func TestContainable(t *testing.T) {
	t.Parallel()
	s := &tuner.Study{Host: tuner.HostSpec{Kind: tuner.HostSSH, Address: "gpu-box"}, Server: sglang.Server{Container: &sglang.Container{Runtime: "docker", Image: "i:1"}}}
	for _, c := range []struct{ fails, want string }{
		{"", ""},
		{"ps", `server.container needs docker, which does not answer on gpu-box (exit status 1); try "docker ps" there`},
		{"image", `the image i:1 is not on gpu-box, and no trial fetches it; run "docker pull i:1" there`},
	} {
		err := containable(t.Context(), func(_ context.Context, argv []string, _ map[string]string) (string, error) {
			if argv[1] == c.fails {
				return "", errors.New("exit status 1")
			}
			return "", nil
		}, s)
		if got := errText(err); got != c.want {
			t.Errorf("%q fails: %s, want %s", c.fails, got, c.want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
