package tuner_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/tuner"
)

const boxed = `server:
  model: ./models/m
  command: [./serve]
  container: {runtime: docker, image: lmsysorg/sglang:v0.5.5, args: @}
before: [./stop.sh]
space: {hicache-size: {values: [0, 16, 48]}}
workload: {file: prompts.jsonl}
`

func TestContainer(t *testing.T) {
	t.Parallel()
	s := mustParse(t, strings.Replace(boxed, "@", `[--gpus, all, -v/models:/models, --memory=400g, -e, HF_TOKEN=sesame9, --ipc, host, --net=host, --init]`, 1))
	want := &sglang.Container{
		Runtime: "docker", Image: "lmsysorg/sglang:v0.5.5", Memory: 400 << 30,
		Args: []string{"--gpus", "all", "-v/models:/models", "--memory=400g", "-e", "HF_TOKEN=sesame9", "--ipc", "host", "--net=host", "--init"},
	}
	if d := cmp.Diff(want, s.Server.Container); d != "" {
		t.Error(d)
	}
	// Paths of the server are the container's own; those of before are this machine's.
	if s.Server.Model != "./models/m" || s.Server.Command[0] != "./serve" || !strings.HasPrefix(s.Before[0], "/") {
		t.Errorf("model %s, command %s, before %s", s.Server.Model, s.Server.Command[0], s.Before[0])
	}
	identity := s.Identity()["server"]
	for _, text := range []string{string(s.Source), identity} {
		if strings.Contains(text, "sesame9") {
			t.Errorf("a secret is stored: %s", text)
		}
	}
	other := mustParse(t, strings.Replace(boxed, "@", "[--gpus, all]", 1))
	if len(tuner.DiffIdentity(s.Identity(), other.Identity())) == 0 {
		t.Error("another container is the same study")
	}
}

func TestContainerMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prompts.jsonl"), []byte("{\"prompt\": \"x\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"[--rm]", "s.yaml:4:70: `server.container.args` holds `--rm`: sgtune removes the container itself"},
		{"[--gpus, all, --restart, always]", "s.yaml:4:83: `server.container.args` holds `--restart always`: a server that dies must stay dead"},
		{"[--name=mine]", "sgtune names and labels the container itself"},
		{"[-d]", "sgtune runs the container in the background itself"},
		{"[-it]", "sgtune runs the container in the background itself"},
		{"[--privileged, -dit]", "sgtune runs the container in the background itself"},
		{"[--tty=true]", "holds `--tty true`"},
		{"[-l, sgtune.trial=x]", "sgtune names and labels"},
		{"[-e, SGTUNE_TRIAL=x]", "sgtune names and labels"},
		{"[-p, '30000:30000']", "the container has the machine's own network"},
		{"['-p30000:30000']", "the container has the machine's own network"},
		{"[--network, bridge]", "the container has the machine's own network"},
		{"[--log-driver=none]", "sgtune reads the log with logs"},
		{"[--oom-kill-disable]", "would hang instead of ending"},
		{"[--gpus, all, 'lmsysorg/sglang:latest']", "is no flag and no flag's value: docker would take it for the image"},
		{"[--memory, lots]", "`server.container.args` sets --memory `lots`, which is no size"},
		{"--gpus all", "`server.container.args` must be a list of words"},
	} {
		_, err := tuner.ParseStudy("s.yaml", []byte(strings.Replace(boxed, "@", c.args, 1)), dir)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
	for _, good := range []string{"[]", "[--network=host]", "[--label, team=ml, --pull, missing]", "[--log-driver, json-file]", "[-u, '0', --ulimit, memlock=-1]"} {
		if _, err := tuner.ParseStudy("s.yaml", []byte(strings.Replace(boxed, "@", good, 1)), dir); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for text, want := range map[string]string{
		"server: {model: m, container: {image: x}}":                                                        "s.yaml:1:20: `server.container.runtime` is missing",
		"server: {model: m, container: {runtime: dockr, image: x}}":                                        "did you mean `docker`?",
		"server: {model: m, container: {runtime: docker, image: '--rm'}}":                                  "`server.container.image` cannot be `--rm`",
		"server: {model: m, container: docker}":                                                            "`server.container` must be a mapping",
		"server: {model: m, container: {runtime: docker, image: x}}\nhost: {kind: simulated}":              "`server.container` is for local and ssh hosts, not for simulated",
		"server: {model: m, container: {runtime: docker, image: x}, command: [docker, run, x]}":            "write server.container: {runtime: docker, image: IMAGE",
		"server: {model: m, container: {runtime: docker, image: x, volumes: [a]}}":                         "unknown key `server.container.volumes`",
		"server: {model: m, container: {runtime: podman, image: x, args: [--replace, --device, gpu=all]}}": "holds `--replace`",
	} {
		_, err := tuner.ParseStudy("s.yaml", []byte(text+"\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n"), dir)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestContainerMemory: the container's limit enters rule 2 of the host RAM, in admission and in check.
func TestContainerMemory(t *testing.T) {
	t.Parallel()
	s := mustParse(t, strings.Replace(boxed, "@", "[--gpus, all, -m, 40g]", 1))
	facts := tuner.HostFacts{MemTotal: 449e9, MemAvailable: 440e9, CgroupHeadroom: -1, ContainerLimit: s.Server.Container.Memory}
	admit := func(f tuner.HostFacts, gb float64) error {
		return tuner.NewAdmission(s, nil, f, nil).Admit(sglang.Config{"hicache-size": gb})
	}
	var why *tuner.Infeasible
	if err := admit(facts, 48); !errors.As(err, &why) || !strings.Contains(err.Error(), "42.9") {
		t.Errorf("48 GB in a container of 40 GiB: %v", err)
	}
	if err := admit(facts, 16); err != nil {
		t.Errorf("16 GB in a container of 40 GiB: %v", err)
	}
	facts.ContainerLimit = 0
	if err := admit(facts, 48); err != nil {
		t.Errorf("48 GB without a limit: %v", err)
	}
	facts.ContainerLimit = s.Server.Container.Memory
	r := tuner.Check(s, tuner.CheckInput{Facts: facts})
	found := false
	for _, row := range r.Host {
		found = found || row.Name == "container" && strings.Contains(row.Text, "42.9 GB")
	}
	if !found {
		t.Errorf("check does not show the limit: %v", r.Host)
	}
}

func TestContainerNotes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server string
		want   []string
		not    []string
	}{
		{"{model: /models/m, container: {runtime: docker, image: x}}", []string{"sees no GPU", "[--gpus, all]", "may not see the model", `[-v, "/models:/models:ro"]`}, []string{"/dev/shm"}},
		{"{model: /models/m, container: {runtime: podman, image: x}}", []string{"[--device, nvidia.com/gpu=all]"}, nil},
		{"{model: org/m, flags: {tp-size: 8}, container: {runtime: docker, image: x, args: [--gpus, all]}}", []string{"/dev/shm"}, []string{"GPU:", "the model"}},
		{"{model: /m/x, flags: {tp-size: 8}, container: {runtime: docker, image: x, args: [--gpus, all, --ipc=host, -v, '/data:/m:ro']}}", nil, []string{"/dev/shm", "sees no GPU", "the model"}},
		{"{model: /m/x, container: {runtime: docker, image: x, args: [--gpus, all, --mount, 'type=bind,src=/d,dst=/m']}}", nil, []string{"the model"}},
	} {
		s := mustParse(t, "server: "+c.server+"\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n")
		notes := strings.Join(tuner.Check(s, tuner.CheckInput{}).Notes, "\n")
		for _, want := range c.want {
			if !strings.Contains(notes, want) {
				t.Errorf("%s: no %q in\n%s", c.server, want, notes)
			}
		}
		for _, not := range c.not {
			if strings.Contains(notes, not) {
				t.Errorf("%s: %q in\n%s", c.server, not, notes)
			}
		}
	}
}
