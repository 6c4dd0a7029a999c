package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sgtune/host"
)

// fakeSlurm answers each program with a text and a status.
type fakeSlurm struct {
	answers map[string]fakeAnswer
	calls   [][]string
	stdin   string
}

type fakeAnswer struct {
	text   string
	status int
	err    error
}

func (f *fakeSlurm) RunCommand(_ context.Context, argv []string, stdin string) (string, int, error) {
	f.calls, f.stdin = append(f.calls, argv), stdin
	a := f.answers[argv[0]]
	return a.text, a.status, a.err
}

func TestSlurmAnswers(t *testing.T) {
	t.Parallel()
	const down = "Unable to contact slurm controller (connect failure)\n"
	request := host.SlurmRequest{Name: "sgtune-7", Work: "/shared/w"}
	submit := func(c host.SlurmCLI) error {
		_, err := c.Submit(t.Context(), request, "#!/bin/sh\n")
		return err
	}
	show := func(c host.SlurmCLI) error { _, err := c.Job(t.Context(), host.SlurmJob{ID: "7"}); return err }
	named := func(c host.SlurmCLI) error { _, err := c.Named(t.Context(), "sgtune-7"); return err }
	cancel := func(c host.SlurmCLI) error { return c.Cancel(t.Context(), host.SlurmJob{ID: "7"}) }
	for _, c := range []struct {
		name    string
		do      func(host.SlurmCLI) error
		program string
		answer  fakeAnswer
		want    error
	}{
		{"taken", submit, "sbatch", fakeAnswer{text: "note\n12\n"}, nil},
		{"impossible", submit, "sbatch", fakeAnswer{text: "sbatch: error: Batch job submission failed: Requested node configuration is not available\n", status: 1}, host.ErrSlurmRefused},
		{"sbatch, controller down", submit, "sbatch", fakeAnswer{text: "sbatch: error: Batch job submission failed: " + down, status: 1}, host.ErrSlurmUnclear},
		{"sbatch, answer lost", submit, "sbatch", fakeAnswer{text: "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n", status: 1}, host.ErrSlurmUnclear},
		{"sbatch says nothing", submit, "sbatch", fakeAnswer{}, host.ErrSlurmUnclear},
		{"forgotten", show, "scontrol", fakeAnswer{text: "slurm_load_jobs error: Invalid job id specified\n", status: 1}, host.ErrNoJob},
		{"scontrol, controller down", show, "scontrol", fakeAnswer{text: "slurm_load_jobs error: " + down, status: 1}, host.ErrSlurmUnclear},
		{"scontrol, something new", show, "scontrol", fakeAnswer{text: "quantum error\n", status: 3}, host.ErrSlurmUnclear},
		{"scontrol tells of another job", show, "scontrol", fakeAnswer{text: "JobId=8 JobName=x JobState=FAILED\n"}, host.ErrSlurmUnclear},
		{"scontrol says nothing", show, "scontrol", fakeAnswer{}, host.ErrSlurmUnclear},
		{"the way is down", show, "scontrol", fakeAnswer{err: &host.LinkError{Host: "login", Text: "no route"}}, host.ErrSlurmUnclear},
		{"squeue, controller down", named, "squeue", fakeAnswer{text: down, status: 1}, host.ErrSlurmUnclear},
		{"nothing in the queue", named, "squeue", fakeAnswer{}, nil},
		{"cancel what has ended", cancel, "scancel", fakeAnswer{text: "scancel: error: Kill job error on job id 7: Invalid job id specified\n", status: 1}, nil},
		{"cancel, controller down", cancel, "scancel", fakeAnswer{text: down, status: 1}, host.ErrSlurmUnclear},
	} {
		f := &fakeSlurm{answers: map[string]fakeAnswer{c.program: c.answer}}
		err := c.do(host.SlurmCLI{Runner: f})
		if c.want == nil && err != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %q", c.name, err)
		}
		if len(f.calls) != 1 || f.calls[0][0] != c.program {
			t.Errorf("%s: called %q", c.name, f.calls)
		}
	}
}

func TestSlurmSubmitOptions(t *testing.T) {
	t.Parallel()
	f := &fakeSlurm{answers: map[string]fakeAnswer{"sbatch": {text: "12;big\n"}, "scontrol": {text: "JobId=12 JobName=x JobState=RUNNING\n"}}}
	cli := host.SlurmCLI{Runner: f}
	job, err := cli.Submit(t.Context(), host.SlurmRequest{
		Name: "sgtune-7", Partition: "gpu", Account: "a b", Gres: "gpu:h200:8", Memory: 1<<30 + 1, TimeLimit: 26*time.Hour + 3*time.Second/2, Work: "/shared/my w",
	}, "#!/bin/sh\n")
	if err != nil || job.ID != "12" || job.Cluster != "big" || f.stdin != "#!/bin/sh\n" {
		t.Fatalf("%+v, %v", job, err)
	}
	for _, want := range []string{
		"--parsable", "--no-requeue", "--job-name=sgtune-7", "--comment=sgtune-7", "--partition=gpu", "--account=a b", "--gres=gpu:h200:8",
		"--mem=1025M", "--time=1-02:00:02", "--output=/shared/my w/job/sgtune-7-%j.out",
	} {
		if !slices.Contains(f.calls[0], want) {
			t.Errorf("%q lacks %s", f.calls[0], want)
		}
	}
	if _, err := cli.Job(t.Context(), job); err != nil || !slices.Equal(f.calls[1][:3], []string{"scontrol", "-M", "big"}) {
		t.Errorf("%v, %q: not of its cluster", err, f.calls[1])
	}
	for _, r := range []host.SlurmRequest{
		{Name: "", Work: "/w"},
		{Name: "a,b", Work: "/w"},
		{Name: "x JobState=FAILED", Work: "/w"},
		{Name: "-x", Work: "/w"},
		{Name: "a", Work: "w"},
		{Name: "a", Work: "/w%j"},
		{Name: "a", Work: "/w\n"},
	} {
		if _, err := cli.Submit(t.Context(), r, ""); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
}

// Through ssh every word arrives as it is, whatever the shell there prints; the status is the program's own.
func TestSlurmThroughSSH(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link, err := host.NewSSH(sshOptions(t, dir, "echo Welcome; printf 'and more'; echo banner >&2"))
	if err != nil {
		t.Fatal(err)
	}
	odd := "it's a \"$HOME\" `id` $(id) \\ * ünïcödé\nsecond line"
	output, status, err := link.RunCommand(t.Context(), []string{"sh", "-c", `printf '%s|' "$1"; cat; exit 42`, "sh", odd}, "in $HOME `id`\n'x'")
	if want := odd + "|in $HOME `id`\n'x'\n"; output != want || status != 42 || err != nil {
		t.Errorf("%q, %d, %v", output, status, err)
	}
	if output, status, err := link.RunCommand(t.Context(), []string{"no-such-program"}, ""); status != 127 || err != nil {
		t.Errorf("%q, %d, %v", output, status, err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, _, err := link.RunCommand(ctx, []string{"sleep", "30"}, ""); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("bounded by its context: %v", err)
	}
	broken, err := host.NewSSH(sshOptions(t, t.TempDir(), "echo 'ssh: connect to host box port 22: No route to host' >&2; exit 255"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := broken.RunCommand(t.Context(), []string{"true"}, ""); !errors.Is(err, host.ErrUnreachable) {
		t.Errorf("no way: %v", err)
	}
}

func TestSlurmHere(t *testing.T) {
	t.Parallel()
	here := host.SlurmHere{Env: []string{"EXTRA=1"}}
	output, status, err := here.RunCommand(t.Context(), []string{"sh", "-c", `cat; echo "$EXTRA" >&2; exit 3`}, "in\n")
	if output != "in\n1\n" || status != 3 || err != nil {
		t.Errorf("%q, %d, %v", output, status, err)
	}
	if _, _, err := here.RunCommand(t.Context(), []string{"no-such-program"}, ""); err == nil || !strings.Contains(err.Error(), "host.address") {
		t.Errorf("no Slurm: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := here.RunCommand(ctx, []string{"sleep", "30"}, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("too long: %v", err)
	}
}

// batch runs the batch script with a stand-in for the agent, whose keep starts what the run folder holds as "run".
type batch struct {
	*exec.Cmd
	work, folder string
	ended        chan error
}

func startBatch(t *testing.T, shell string, patience time.Duration) batch {
	t.Helper()
	work := filepath.Join(t.TempDir(), "it's $HOME")
	agent := script(t, filepath.Join(t.TempDir(), "agent"), `cd "$2" || exit 1
trap : TERM
setsid sh ./run & p=$!
printf '{"boot_id":"b","pid":%s,"pgid":%s,"start_ticks":1,"argv":["\\"pgid\\":1,"]}\n' $p $p >id
while kill -0 $p 2>/dev/null; do wait $p; done
echo ended >rc
`)
	if err := os.MkdirAll(filepath.Join(work, "run", "r1"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := host.BatchScript(host.SlurmRequest{Name: "sgtune-7", Work: work}, agent, patience)
	b := batch{exec.Command(shell, "-s"), work, filepath.Join(work, "job", "sgtune-7"), make(chan error, 1)}
	b.Stdin = strings.NewReader(text)
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { b.ended <- b.Wait() }()
	t.Cleanup(func() { _ = b.Process.Kill() })
	until(t, "begun", func() bool { _, err := os.Stat(filepath.Join(b.folder, "begun")); return err == nil })
	return b
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("never: " + what)
}

func (b batch) ask(t *testing.T, program string) {
	t.Helper()
	run := filepath.Join(b.work, "run", "r1")
	if err := errors.Join(os.WriteFile(filepath.Join(run, "run"), []byte(program), 0o600), os.WriteFile(filepath.Join(b.folder, "ask", "r1"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	until(t, "up", func() bool { _, err := os.Stat(filepath.Join(run, "up")); return err == nil })
}

func (b batch) rc(t *testing.T) string {
	t.Helper()
	select {
	case err := <-b.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the batch script does not end")
	}
	text, err := os.ReadFile(filepath.Join(b.folder, "rc"))
	if err != nil {
		t.Fatal(err)
	}
	var why string
	var began, end int64
	if n, err := fmt.Sscan(string(text), &why, &began, &end); n != 3 || err != nil || end < began || time.Now().Unix()-began > 60 {
		t.Errorf("rc is %q: %v", text, err)
	}
	return why
}

func TestBatchScript(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"dash", "bash"} {
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("%s is not here", shell)
			continue
		}
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				name, want string
				patience   time.Duration
				end        func(*testing.T, batch)
			}{
				{"TERM is passed on", "term", 0, func(t *testing.T, b batch) {
					if err := b.Process.Signal(syscall.SIGTERM); err != nil {
						t.Error(err)
					}
				}},
				{"not needed any more", "done", 0, func(t *testing.T, b batch) {
					if err := os.WriteFile(filepath.Join(b.folder, "done"), nil, 0o600); err != nil {
						t.Error(err)
					}
				}},
				{"nobody is connected", "silence", time.Second, func(*testing.T, batch) {}},
			} {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					b := startBatch(t, shell, c.patience)
					b.ask(t, "trap 'echo got >term; exit 5' TERM; echo >up; while :; do sleep 0.05; done")
					c.end(t, b)
					if why := b.rc(t); why != c.want {
						t.Errorf("rc says %q, want %q", why, c.want)
					}
					if _, err := os.Stat(filepath.Join(b.work, "run", "r1", "term")); err != nil {
						t.Errorf("the server's group had no TERM: %v", err)
					}
				})
			}
		})
	}
}
