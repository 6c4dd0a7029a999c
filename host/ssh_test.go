package host_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// fakeSSH is a program that plays ssh: it notes its arguments, does what before says, and runs the command here.
// test/hosts has the real one.
func fakeSSH(t *testing.T, dir, before string) string {
	t.Helper()
	return script(t, filepath.Join(dir, "fake-ssh"), `for a; do printf '%s\n' "$a"; done >>'`+dir+`/args'
case " $* " in *" -O "*) exit 255 ;; esac
`+before+`
for last; do :; done
exec sh -c "$last"
`)
}

func script(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// sshOptions are those of a link through fakeSSH, to an agent that the test binary plays.
func sshOptions(t *testing.T, dir, before string) host.SSHOptions {
	t.Helper()
	program := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = version ] || exec %s hosttest-agent %s \"$1\" -\n", os.Args[0], dir)
	sum := sha256.Sum256([]byte(program))
	return host.SSHOptions{
		Address: "user@box", Config: "/my/config", Work: dir + "/placed here", Program: fakeSSH(t, dir, before),
		Agent: func(string) ([]byte, string, error) { return []byte(program), hex.EncodeToString(sum[:]), nil },
	}
}

func sshRemote(t *testing.T, o host.SSHOptions) *host.Remote {
	t.Helper()
	link, err := host.NewSSH(o)
	if err != nil {
		t.Fatal(err)
	}
	r := host.NewRemote(host.RemoteOptions{Link: link})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestSSHStartsTheAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := sshOptions(t, dir, "echo Welcome to the box; printf 'and more without an end'; echo banner >&2")
	o.Env = map[string]string{"ODD": "it's $HOME\n`x`"}
	r := sshRemote(t, o)
	p, err := r.Start(t.Context(), host.Command{Argv: []string{"sh", "-c", `printf %s "$ODD"`}})
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Wait(t, p)
	if b, err := p.Log(t.Context(), 0, 1000); string(b) != o.Env["ODD"] || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "args"))
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, want := range []string{"BatchMode=yes", "ControlMaster=auto", "ControlPersist=120", "ServerAliveInterval=5", "ConnectTimeout=5", "/my/config"} {
		if !slices.Contains(args, want) {
			t.Errorf("%q lacks %s", args, want)
		}
	}
	if n := slices.Index(args, "--"); n < 0 || args[n+1] != "user@box" {
		t.Errorf("%q: the address may be read as an option", args)
	}
	if text := strings.ToLower(string(b)); strings.Contains(text, "stricthostkey") || strings.Contains(text, "knownhosts") {
		t.Errorf("%q meddles with host keys", args)
	}
}

func TestSSHTroubles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, before string
		words        []string
	}{
		{"changed host key", "echo '@@@@@@@@@@@@'; echo '@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @' >&2; echo 'Host key verification failed.' >&2; exit 255", []string{"host key has changed", "ssh-keygen -R"}},
		{"unknown host key", "echo 'Host key verification failed.' >&2; exit 255", []string{"not known here"}},
		{"no key", "echo 'user@box: Permission denied (publickey).' >&2; exit 255", []string{"accepted none of your keys", "Permission denied (publickey)"}},
		{"refused", "echo 'ssh: connect to host box port 22: Connection refused' >&2; exit 255", []string{"connection was refused"}},
		{"a dead master first", "echo 'Control socket connect(/x): Connection refused' >&2; echo 'ssh: connect to host box port 22: No route to host' >&2; exit 255", []string{"no route to it"}},
		{"time", "echo 'ssh: connect to host box port 22: Connection timed out' >&2; exit 255", []string{"did not answer in time"}},
		{"name", "echo 'ssh: Could not resolve hostname box: Name or service not known' >&2; exit 255", []string{"no machine of that name"}},
		{"something new", "echo 'quantum link collapsed' >&2; exit 255", []string{"quantum link collapsed", "exit status 255"}},
		{"no shell", "echo 'no login today'; exit 1", []string{`"no login today"`, "exit status 1"}},
		{"a remote 255", "exit 255", []string{"without a word", "exit status 255"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			_, err := sshRemote(t, sshOptions(t, t.TempDir(), c.before)).Usage(t.Context())
			if !errors.Is(err, host.ErrUnreachable) {
				t.Fatalf("%v: not ErrUnreachable", err)
			}
			for _, w := range append(c.words, "user@box") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v\nlacks %q", err, w)
				}
			}
			if took := time.Since(begin); strings.Contains(err.Error(), "\n") || took > 10*time.Second {
				t.Errorf("%q after %s", err, took)
			}
		})
	}
}

func TestSSHOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []host.SSHOptions{
		{Address: ""}, {Address: "-oProxyCommand=x"}, {Address: "a b"}, {Address: "a\nb"}, {Address: "box", Env: map[string]string{"A-B": ""}},
	} {
		if _, err := host.NewSSH(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// A program that arrives damaged is not run.
func TestSSHChecksTheAgent(t *testing.T) {
	t.Parallel()
	o := sshOptions(t, t.TempDir(), "")
	whole := o.Agent
	o.Agent = func(arch string) ([]byte, string, error) {
		b, sum, err := whole(arch)
		return append(slices.Clone(b), "rm -rf ~\n"...), sum, err
	}
	_, err := sshRemote(t, o).Usage(t.Context())
	if err == nil || !strings.Contains(err.Error(), "arrived damaged") {
		t.Error(err)
	}
	if list, err := os.ReadDir(filepath.Join(o.Work, "bin")); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}
