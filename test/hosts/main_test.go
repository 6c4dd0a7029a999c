package hosts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// Where the testbed lies; in the environment because helper programs that play another sgtune need it, too.
const (
	bedEnv   = "SGTUNE_TEST_BED"   // folder of the servers
	agentEnv = "SGTUNE_TEST_AGENT" // the built agent
	portEnv  = "SSHD_TB_PORT"
)

func TestMain(m *testing.M) { hosttest.Main(m, newHost, build, serve) }

// why is why there are no servers, "" when there are.
var why string

// build builds the agent.
func build() (func(), error) { return hosttest.BuildAgent("sgtune-hosts-", bedEnv, agentEnv) }

// serve starts the servers.
func serve() (func(), error) {
	if testing.Short() {
		return func() {}, nil
	}
	if _, err := exec.LookPath("sshd"); err != nil {
		if _, err := os.Stat("/usr/sbin/sshd"); err != nil {
			why = "no sshd here: run test/testbed/sshd.sh install"
			if os.Getenv("SGTUNE_TESTBED") == "required" {
				return func() {}, fmt.Errorf("%s", why)
			}
			return func() {}, nil
		}
	}
	port, free, err := hosttest.Ports(20000)
	if err != nil {
		return free, err
	}
	for name, value := range map[string]string{"SSHD_TB_DIR": bed("sshd"), portEnv: fmt.Sprint(port)} {
		if err := os.Setenv(name, value); err != nil {
			return free, err
		}
	}
	undo := func() { _ = testbed("purge"); free() }
	if err := testbed("start"); err != nil {
		return undo, err
	}
	return undo, moreHosts()
}

func bed(name string) string { return filepath.Join(os.Getenv(bedEnv), name) }

func testbed(verb string) error {
	cmd := exec.Command("../testbed/sshd.sh", verb)
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("sshd.sh %s: %w: %s", verb, err, out)
	}
	return nil
}

// moreHosts adds hosts whose login shells are odd: the server runs a command of ours in place of the one it is asked
// for, which it finds in SSH_ORIGINAL_COMMAND.
func moreHosts() error {
	poor := bed("poor")
	if err := os.MkdirAll(poor, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"sh", "uname", "mkdir", "chmod", "mv", "rm", "head"} { // no sha256sum
		path, err := exec.LookPath(name)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(poor, name)); err != nil {
			return err
		}
	}
	bash := bed("bash")
	if err := os.MkdirAll(bash, 0o700); err != nil {
		return err
	}
	if err := os.Symlink("/bin/bash", filepath.Join(bash, "sh")); err != nil {
		return err
	}
	shells := map[string]string{
		"chatty":   `echo Welcome; echo to 'the machine' >&2; printf 'no newline here'; exec sh -c \"$SSH_ORIGINAL_COMMAND\"`,
		"dash":     `exec dash -c \"$SSH_ORIGINAL_COMMAND\"`,
		"bash":     `PATH=` + bash + `:$PATH; exec bash -c \"$SSH_ORIGINAL_COMMAND\"`,
		"poor":     `PATH=` + poor + `; exec sh -c \"$SSH_ORIGINAL_COMMAND\"`,
		"nologin":  `echo This account is currently not available.; exit 1`,
		"endless":  `yes`,
		"slow":     `sleep 60`,
		"notlinux": `PATH=` + bed("beos") + `:$PATH; exec sh -c \"$SSH_ORIGINAL_COMMAND\"`,
		"oddcpu":   `PATH=` + bed("vax") + `:$PATH; exec sh -c \"$SSH_ORIGINAL_COMMAND\"`,
		// of the studies: GPUs that their servers fill, and a lease of their own
		"gpu-study": `export PATH=` + bed("gpu") + `:$PATH XDG_STATE_HOME=` + bed("state") + `; exec sh -c \"$SSH_ORIGINAL_COMMAND\"`,
		// the same for a reclaim that is told no folder
		"gpu-reclaim": `export PATH=` + bed("gpu") + `:$PATH XDG_STATE_HOME=` + bed("state") + ` XDG_CACHE_HOME=` + bed("cache") + `; exec sh -c \"$SSH_ORIGINAL_COMMAND\"`,
	}
	for dir, script := range map[string]string{"beos": "echo BeOS", "vax": `[ "$1" = -s ] && echo Linux || echo vax`} {
		if err := os.MkdirAll(bed(dir), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(bed(dir), "uname"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			return err
		}
	}
	config, keys := "", ""
	for name, command := range shells {
		key := bed("key-" + name)
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
			return fmt.Errorf("ssh-keygen: %w: %s", err, out)
		}
		public, err := os.ReadFile(key + ".pub")
		if err != nil {
			return err
		}
		keys += `command="` + command + `" ` + string(public)
		config += fmt.Sprintf("Host %s\n  HostName 127.0.0.1\n  Port %s\n  IdentityFile %s\n", name, os.Getenv(portEnv), key)
	}
	// First come the options of a user who has a lot of them, as no test of ours should depend on an empty file.
	config = "Host chatty\n  RemoteCommand uptime\n  RequestTTY force\n" + config + "Match all\nInclude " + bed("sshd/ssh_config") + "\n"
	config = fmt.Sprintf("Host gpu-study-via-jump\n  HostName 127.0.0.1\n  Port %s\n  IdentityFile %s\n  ProxyCommand ssh -F %s -W %%h:%%p jump-host\n",
		os.Getenv(portEnv), bed("key-gpu-study"), bed("sshd/ssh_config")) + config
	if err := os.WriteFile(bed("keys"), []byte(keys), 0o600); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(bed("config"), []byte(config), 0o600), addKeys())
}

// addKeys lets the keys of the odd hosts in; a start of the servers writes the file anew.
func addKeys() error {
	keys, err := os.ReadFile(bed("keys"))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(bed("sshd/authorized_keys"), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(keys)
	return errors.Join(err, f.Close())
}

// need skips a test that cannot run here.
func need(t *testing.T) {
	t.Helper()
	hosttest.Watch(t)
	if testing.Short() {
		t.Skip("real servers: make test-all runs it")
	}
	if why != "" {
		t.Skip(why)
	}
}

// agent reads the built agent, as sgtune does the embedded one.
func agent(arch string) ([]byte, string, error) {
	if arch == "vax" {
		return nil, "", fmt.Errorf("there is no agent for %q", arch)
	}
	b, err := os.ReadFile(os.Getenv(agentEnv))
	sum := sha256.Sum256(b)
	return b, hex.EncodeToString(sum[:]), err
}

// options are those of a link to a host of the testbed whose lease lies in dir.
func options(address, dir string) host.SSHOptions {
	return host.SSHOptions{
		Address: address, Config: bed("config"), Work: bed("work"), Env: map[string]string{"XDG_STATE_HOME": dir}, Agent: agent,
	}
}

func newRemote(o host.SSHOptions) *host.Remote {
	link, err := host.NewSSH(o)
	if err != nil {
		panic(err) // of a test: there is no t in helper programs
	}
	return host.NewRemote(host.RemoteOptions{Link: link})
}

func fixture(t *testing.T, kind string) hosttest.Fixture {
	t.Helper()
	need(t)
	return hosttest.NewFixture(t, suite(kind))
}

// eventually waits for something to become true.
func eventually(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// oneLine checks what a user is to read.
func oneLine(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v\nlacks %q", err, w)
		}
	}
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("more than one line: %q", err)
	}
}
