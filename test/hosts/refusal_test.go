package hosts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sgtune/host"
)

// try asks a host for something and returns the error, and how long that took.
func try(t *testing.T, o host.SSHOptions) (time.Duration, error) {
	t.Helper()
	r := newRemote(o)
	begin := time.Now()
	_, err := r.Usage(t.Context())
	took := time.Since(begin)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return took, err
}

// Each way not to get in is told at once, in one line, with the reason and what to do.
func TestRefusals(t *testing.T) {
	need(t)
	for _, c := range []struct {
		address string
		words   []string
	}{
		{"bad-hostkey", []string{"host key has changed", "ssh-keygen -R"}},
		{"refused", []string{"connection was refused", "no ssh server listens"}},
		{"no-key", []string{"accepted none of your keys", "log in once by hand"}},
		{"no-such-host.invalid", []string{"no machine of that name", "check the address"}},
		{"nologin", []string{"This account is currently not available."}},
		{"endless", []string{"does not run a script", `said "y"`}},
		{"poor", []string{"the command sha256sum is missing there"}},
		{"notlinux", []string{`runs "BeOS"`}},
		{"oddcpu", []string{`no agent for "vax"`}},
	} {
		t.Run(c.address, func(t *testing.T) {
			t.Parallel()
			took, err := try(t, options(c.address, t.TempDir()))
			oneLine(t, err, append(c.words, c.address)...)
			if !errors.Is(err, host.ErrUnreachable) {
				t.Errorf("%v: not ErrUnreachable", err)
			}
			if took > 20*time.Second {
				t.Errorf("told after %s", took)
			}
		})
	}
}

// An unknown host key is refused whatever the user's configuration says about asking, and stays unknown.
func TestUnknownHostKey(t *testing.T) {
	need(t)
	dir := t.TempDir()
	known, config := filepath.Join(dir, "known_hosts"), filepath.Join(dir, "config")
	if err := os.WriteFile(known, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text := "Host gpu-host\n  UserKnownHostsFile " + known + "\n  StrictHostKeyChecking ask\nMatch all\nInclude " + bed("config") + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options("gpu-host", dir)
	o.Config = config
	_, err := try(t, o)
	oneLine(t, err, "host key is not known here", "compare the fingerprint")
	if b, err := os.ReadFile(known); len(b) != 0 || err != nil {
		t.Errorf("known_hosts now holds %q, %v", b, err)
	}
}

func TestLocalTrouble(t *testing.T) {
	need(t)
	o := options("gpu-host", t.TempDir())
	o.Program = "no-such-ssh"
	_, err := try(t, o)
	oneLine(t, err, "no-such-ssh is missing on this machine", "install openssh-client")

	o = options("gpu-host", t.TempDir())
	o.Config = filepath.Join(t.TempDir(), "none")
	_, err = try(t, o)
	oneLine(t, err, "configuration file cannot be read", o.Config)

	o = options("gpu-host", t.TempDir())
	if err := os.WriteFile(o.Config+"-wrong", []byte("Host *\n  NoSuchOption yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Config += "-wrong"
	_, err = try(t, o)
	oneLine(t, err, "configuration is wrong", "nosuchoption")

	for _, address := range []string{"", "-oProxyCommand=touch owned", "two words", "line\nbreak"} {
		o := options(address, t.TempDir())
		if _, err := host.NewSSH(o); err == nil || !strings.Contains(err.Error(), "no address for ssh") {
			t.Errorf("%q: %v", address, err)
		}
	}
	o = options("gpu-host", t.TempDir())
	o.Env = map[string]string{"A; rm -rf ~": "x"}
	if _, err := host.NewSSH(o); err == nil {
		t.Error("an odd variable name was taken")
	}
}

// A machine that takes the login and then says nothing is given up when the context ends.
func TestSilentShell(t *testing.T) {
	need(t)
	r := newRemote(options("slow", t.TempDir()))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errors.New("that is enough"))
	defer cancel()
	begin := time.Now()
	_, err := r.Usage(ctx)
	oneLine(t, err, "that is enough")
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
