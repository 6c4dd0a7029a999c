package launch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/internal/launch"
)

// fakeProc writes a proc file system: one process a line of its arguments.
type fakeProc struct {
	pid, parent      int
	cmdline, environ []string
}

func procTree(t *testing.T, all ...fakeProc) launch.Processes {
	t.Helper()
	root := t.TempDir()
	for _, p := range all {
		dir := filepath.Join(root, fmt.Sprint(p.pid))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"stat":    fmt.Sprintf("%d (py) thon) S %d 1 1 0 -1", p.pid, p.parent),
			"cmdline": strings.Join(p.cmdline, "\x00") + "\x00", "environ": strings.Join(p.environ, "\x00") + "\x00",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return launch.Processes{Root: root}
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	tree := procTree(t,
		fakeProc{1, 0, []string{"/sbin/init"}, nil},
		fakeProc{50, 1, []string{"bash", "serve.sh"}, nil},
		fakeProc{51, 50, []string{"numactl", "-N", "0", "/opt/v/bin/python3", "-m", "sglang.launch_server", "--model-path", "/m 1", "--tp", "2"}, []string{
			"PATH=/usr/bin", "HOME=/root", "NCCL_DEBUG=WARN", "HF_TOKEN=hf_Zk3sQp0aB9xYv7LtRw2e", "SGLANG_X=1", "EDITOR=vi", "CUDA_VISIBLE_DEVICES=",
		}},
		fakeProc{52, 51, []string{"sglang::scheduler_TP0"}, nil},
		fakeProc{53, 51, []string{"/opt/v/bin/python3", "-c", "from multiprocessing.spawn import spawn_main"}, nil},
		fakeProc{60, 1, []string{"nginx"}, nil},
	)
	want := launch.Launch{
		Kind: launch.KindProcess, Name: "process 51", Command: []string{"numactl", "-N", "0", "/opt/v/bin/python3", "-m", "sglang.launch_server"},
		Args: []string{"--model-path", "/m 1", "--tp", "2"},
		Env:  map[string]string{"NCCL_DEBUG": "WARN", "HF_TOKEN": "hf_Zk3sQp0aB9xYv7LtRw2e", "SGLANG_X": "1"},
	}
	for name, pid := range map[string]int{"the launcher": 51, "a renamed scheduler": 52, "a spawned child": 53} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tree.Read(pid)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Command) > 0 && filepath.Base(got.Command[0]) == "numactl" {
				got.Command[0] = "numactl" // found on machines that have it
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for pid, want := range map[int]string{50: "belongs to no SGLang server", 60: "belongs to no SGLang server", 99: "does not run"} {
		if _, err := tree.Read(pid); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("process %d: %v, want %q", pid, err, want)
		}
	}
}
