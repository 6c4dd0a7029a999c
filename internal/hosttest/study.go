package hosttest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Study is a study that the built sgtune runs. All that belongs to it lies below Dir, a name that no other process and no
// other file has.
type Study struct {
	T       *testing.T
	Name    string
	Dir     string
	Program string   // path of sgtune
	Env     []string // added to the environment of the program, NAME=VALUE

	runs int // of the program so far
}

// NewStudy makes the folder of a study, which is removed at the end of the test; what the program said is told before,
// where the test failed.
func NewStudy(t *testing.T, s Study) *Study {
	t.Helper()
	s.T = t
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.tell()
		}
		_ = os.RemoveAll(s.Dir)
	})
	return &s
}

// Path is a file of the study.
func (s *Study) Path(name string) string { return filepath.Join(s.Dir, name) }

// DB is the path of its database.
func (s *Study) DB() string { return s.Path("sgtune.db") }

// Write writes one of its files.
func (s *Study) Write(name, text string) {
	s.T.Helper()
	if err := os.WriteFile(s.Path(name), []byte(text), 0o600); err != nil {
		s.T.Fatal(err)
	}
}

// Command is one run of the program, whose output is collected in the file out.
func (s *Study) Command(args ...string) (cmd *exec.Cmd, out string) {
	s.T.Helper()
	s.runs++
	out = s.Path(fmt.Sprintf("out-%d", s.runs))
	f, err := os.Create(out)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = f.Close() })
	cmd = exec.Command(s.Program, args...)
	cmd.Env = append(append(os.Environ(), "NO_COLOR=1"), s.Env...)
	cmd.Stdout, cmd.Stderr = f, f
	return cmd, out
}

// tell prints what a person would ask for after a failure.
func (s *Study) tell() {
	for i := range s.runs {
		b, _ := os.ReadFile(s.Path(fmt.Sprintf("out-%d", i+1)))
		if !bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) { // of show
			s.T.Logf("%s, run %d:\n%s", s.Name, i+1, b)
		}
	}
}

// Tuning is a `sgtune tune` that was started.
type Tuning struct {
	Cmd   *exec.Cmd
	Out   string        // file with what it prints
	Ended chan struct{} // closed at its end
	Code  int           // exit status, valid once Ended is closed
}

// Start begins or continues the study of study.yaml.
func (s *Study) Start() *Tuning {
	s.T.Helper()
	cmd, out := s.Command("tune", s.Path("study.yaml"), "--db", s.DB(), "--web", "off")
	if err := cmd.Start(); err != nil {
		s.T.Fatal(err)
	}
	r := &Tuning{Cmd: cmd, Out: out, Ended: make(chan struct{})}
	go func() {
		defer close(r.Ended)
		_ = cmd.Wait() // its status is read below
		r.Code = cmd.ProcessState.ExitCode()
	}()
	s.T.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-r.Ended
	})
	return r
}

// Text is what the run has printed so far.
func (r *Tuning) Text() string {
	b, _ := os.ReadFile(r.Out)
	return string(b)
}

// Kill is kill -9 of the program; false when it had ended before.
func (r *Tuning) Kill() bool {
	select {
	case <-r.Ended:
		return false
	default:
	}
	_ = r.Cmd.Process.Signal(syscall.SIGKILL)
	<-r.Ended
	return true
}

// Await waits for the end of a run.
func (s *Study) Await(r *Tuning, limit time.Duration) {
	s.T.Helper()
	select {
	case <-r.Ended:
	case <-time.After(limit):
		s.T.Fatalf("not over after %s\n%s", limit, r.Text())
	}
}

// Processes are those that carry the study's marker, name its folder, or have a text of marks in their environment: command
// lines by pid.
func (s *Study) Processes(marks ...string) map[int]string {
	marks = append(marks, "SGTUNE_TRIAL="+s.Name+".")
	found := map[int]string{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		var pid int
		_, _ = fmt.Sscanf(filepath.Base(folder), "%d", &pid)
		line, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(folder, "environ"))
		ours := bytes.Contains(line, []byte(s.Dir+"/"))
		for _, mark := range marks {
			ours = ours || bytes.Contains(env, []byte(mark))
		}
		if ours && pid != os.Getpid() && len(line) > 0 { // a zombie has none
			found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
	return found
}

// NothingLeft fails when something is still left a moment after the end of the study.
func (s *Study) NothingLeft(left func() []string) {
	s.T.Helper()
	var found []string
	for end := time.Now().Add(patience / 2); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if found = left(); len(found) == 0 {
			return
		}
	}
	s.T.Errorf("left behind:\n%s", strings.Join(found, "\n"))
}
