package launch_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/internal/launch"
	"sgtune/sglang"
	"sgtune/tuner"
)

const serveInside = " lmsysorg/sglang:v0.5.9 python3 -m sglang.launch_server --model-path /models/m"

// readLine reads a command line typed in /srv/llm, where vars.env lies.
func readLine(t *testing.T, line string) *launch.Plan {
	t.Helper()
	launches, err := launch.ReadCommand("line", line, launch.Options{Path: "/srv/llm/x", Lookup: outside, ReadFile: func(name string) ([]byte, error) {
		if name != "/srv/llm/vars.env" {
			return nil, os.ErrNotExist
		}
		return []byte("NCCL_DEBUG=WARN\nHF_TOKEN=hf_abcdefghijklmnop\n"), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(launches) != 1 {
		t.Fatalf("%d launches", len(launches))
	}
	return launch.NewPlan(launches[0], launch.PlanOptions{})
}

// TestRunBecomesAContainer: docker run and podman run become server.container, as the tuner reads it back.
func TestRunBecomesAContainer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		runtime    string
		args       []string
		env        map[string]string
		left       string   // options that are left out, in order
		command    string   // "" = python3 -m sglang.launch_server
		says       []string // in the file
	}{
		{
			name: "usual", line: "docker run --gpus all --shm-size 32g --ipc=host -v /data:/models:ro --memory 400g" + serveInside,
			args: []string{"--gpus", "all", "--shm-size", "32g", "--ipc=host", "-v", "/data:/models:ro", "--memory", "400g"},
		},
		{
			name: "what sgtune does itself", line: "sudo docker run -d -it --rm --name kimi --restart always --network bridge -p 80:30000 --cidfile x" + serveInside,
			left: "--detach --interactive --tty --rm --name --restart --network --publish --cidfile",
			says: []string{"# -d -i -t is left out: sgtune runs the container in the background", "# before: [systemctl", "The server runs through sudo"},
		},
		{name: "its name", line: "docker run -d --name kimi" + serveInside, left: "--detach --name", says: []string{"# before: [docker, stop, kimi]", "# after: [docker, start, kimi]"}},
		{name: "clusters", line: "podman run -dp 80:80 -itv /a:/b --net=host -m4g" + serveInside, runtime: "podman", args: []string{"-v", "/a:/b", "--net=host", "-m4g"}, left: "--detach --publish --interactive --tty"},
		{name: "unknown flags", line: "docker run --frobnicate x --some=thing --ulimit memlock=-1" + serveInside, args: []string{"--frobnicate", "x", "--some=thing", "--ulimit", "memlock=-1"}},
		{
			name: "variables", line: "docker run -e NCCL_DEBUG=INFO --env 'A=b c' -eB=1 -e HF_TOKEN=hf_abcdefghijklmnop -e ASIDE" + serveInside,
			args: []string{"-e", "ASIDE", "-e", "HF_TOKEN"}, env: map[string]string{"NCCL_DEBUG": "INFO", "A": "b c", "B": "1"},
			says: []string{"HF_TOKEN is a secret and was not written into the file"},
		},
		{
			name: "files of variables", line: "docker run --env-file vars.env --env-file other.env -w /w" + serveInside,
			args: []string{"-w", "/w", "--env-file", "/srv/llm/other.env", "-e", "HF_TOKEN"}, env: map[string]string{"NCCL_DEBUG": "WARN"},
		},
		{
			name: "folders", line: "cd /data && docker run -v ./m:/models -v../c:/c:ro --volume=.:/d -v named:/e -v $HOME/f:/f" + serveInside,
			args: []string{"-v", "/data/m:/models", "-v/c:/c:ro", "--volume=/data:/d", "-v", "named:/e", "-v", "/home/op/f:/f"},
		},
		{name: "entry point", line: "docker run --entrypoint python3 img -m sglang.launch_server --model-path /models/m", args: []string{"--entrypoint="}},
		{name: "entry point in words", line: `podman run --entrypoint '["python3", "-m"]' img sglang.launch_server --model-path /models/m`, runtime: "podman", args: []string{"--entrypoint="}},
		{name: "the image's own", line: "docker run --gpus all lmsysorg/sglang:v0.5.9 --model-path /models/m", args: []string{"--gpus", "all", "--entrypoint="}, says: []string{"own entry point is taken to be"}},
		{name: "serve", line: "docker run -- lmsysorg/sglang:v0.5.9 sglang serve /models/m", command: "sglang serve"},
		{name: "a shell inside", line: "docker run img bash -c 'pip install x && python3 -m sglang.launch_server --model-path /models/m'", says: []string{"A shell in the container does more than start the server"}},
		{name: "a plain shell inside", line: "docker run img bash -c 'exec python3 -m sglang.launch_server --model-path /models/m'"},
		{
			name: "known when it runs", line: "docker run -v $(find /x):/models --shm-size ${SHM}" + serveInside, left: "--volume --shm-size",
			says: []string{"FILL IN: known only when the source runs"},
		},
		{name: "no size", line: "docker run --memory lots -m 0" + serveInside, left: "--memory --memory"},
		{name: "what bears our names", line: "docker run -l team=ml --label sgtune.trial=x --log-driver none -e SGTUNE_A=1 -e SGTUNE_B" + serveInside, args: []string{"-l", "team=ml"}, left: "--label --log-driver --env --env"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := readLine(t, c.line)
			text := written(t, p)
			s := readBack(t, text)
			got := s.Server.Container
			if got == nil {
				t.Fatalf("no container\n%s", text)
			}
			if runtime := got.Runtime; runtime != "docker" && runtime != c.runtime || c.runtime != "" && runtime != c.runtime {
				t.Errorf("runtime %s", runtime)
			}
			if d := cmp.Diff(c.args, got.Args); d != "" {
				t.Errorf("arguments (-want +got)\n%s", d)
			}
			if c.command == "" {
				c.command = "python3 -m sglang.launch_server"
			}
			if words := strings.Join(s.Server.Command, " "); words != c.command || s.Server.Model != "/models/m" {
				t.Errorf("command %q, model %s", words, s.Server.Model)
			}
			if c.env == nil {
				c.env = map[string]string{}
			}
			if d := cmp.Diff(c.env, s.Server.Env); d != "" {
				t.Errorf("variables (-want +got)\n%s", d)
			}
			var left []string
			for _, e := range p.Box.Left {
				left = append(left, e.Name)
			}
			if words := strings.Join(left, " "); words != c.left {
				t.Errorf("left out %q, want %q", words, c.left)
			}
			for _, want := range append(c.says, left...) {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if strings.Contains(text, "hf_abc") {
				t.Errorf("a secret is in\n%s", text)
			}
		})
	}
}

// TestNotEveryContainerIsTheStudys: what cannot be made for each trial stays a comment.
func TestNotEveryContainerIsTheStudys(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"docker exec -it kimi python3 -m sglang.launch_server --model-path /models/m",
		"apptainer exec --nv /images/sglang.sif python3 -m sglang.launch_server --model-path /models/m",
		"nvidia-docker run img python3 -m sglang.launch_server --model-path /models/m",
	} {
		p := readLine(t, line)
		if text := written(t, p); p.Box != nil || readBack(t, text).Server.Container != nil || !strings.Contains(text, "Run sgtune inside it") {
			t.Errorf("%s:\n%s", line, text)
		}
	}
	p := readLine(t, "docker run ${IMAGE} python3 -m sglang.launch_server --model-path /models/m")
	if text := written(t, p); readBack(t, text).Server.Container.Image != "FILL-IN" || !strings.Contains(text, "FILL IN: the name of the image") {
		t.Errorf("an image that is not known:\n%s", text)
	}
}

// FuzzRunLine: whatever stands between docker run and the server, the study is one that the tuner takes, and none of its
// arguments breaks what sgtune promises.
func FuzzRunLine(f *testing.F) {
	for _, options := range []string{
		"--gpus all", "-itv ./a:/b", "-e A=b --env-file x", "-p 80:80 --rm --name=x", "--entrypoint '' -m 4g", "--volume", "-- img", "-e SGTUNE_TRIAL=1", "-w '' -e =x", "--memory=1e300g", "-i-", "-eSGTUNE_",
	} {
		f.Add(options)
	}
	dir := f.TempDir()
	if err := os.WriteFile(dir+"/FILL-IN.jsonl", []byte("{\"prompt\": \"a\", \"output_tokens\": 1}\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, options string) {
		hung := time.AfterFunc(20*time.Second, func() { panic("a line takes more than 20 s") })
		defer hung.Stop()
		launches, err := launch.ReadCommand("line", "docker run "+options+serveInside, launch.Options{Path: "/srv/llm/x", Lookup: outside})
		if err != nil {
			return
		}
		for _, l := range launches {
			p := launch.NewPlan(l, launch.PlanOptions{})
			var b strings.Builder
			if err := p.WriteStudy(&b); err != nil {
				t.Fatal(err)
			}
			if p.Box == nil {
				continue
			}
			args, _ := sglang.RunArgs(p.Box.Args)
			for _, a := range args {
				if why := a.Refused(); why != "" {
					t.Fatalf("%q stays: %s", a.Words, why)
				}
			}
			if _, err := tuner.ParseStudy("study.yaml", []byte(b.String()), dir); err != nil && strings.Contains(err.Error(), "server.container") {
				t.Fatalf("%v\n%s", err, b.String())
			}
		}
	})
}
