package host

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// settleHere leaves a small server running, with the test binary as its keeper.
func settleHere(t *testing.T, units systemd, script string) (*Local, Resident) {
	t.Helper()
	dir := t.TempDir()
	l := NewLocal(LocalOptions{StateDir: dir})
	r, err := l.settle(t.Context(), ResidentSpec{
		Name: "night", Command: Command{Argv: []string{"sh", "-c", script}}, Port: 30000, Keeper: []string{os.Args[0], "hosttest-agent", dir, "stay"},
	}, units)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Dismiss(context.WithoutCancel(t.Context()), "night"); err != nil {
			t.Error(err)
		}
	})
	return l, r
}

// fakeSystemd is a folder with a systemd-run that writes down what it was told, and runs what stands after -- or fails.
func fakeSystemd(t *testing.T, works bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	script := `#!/bin/sh
printf '%s\n' "$@" >"$(dirname "$0")/told"
` + map[bool]string{
		true:  `while [ "$1" != -- ]; do shift; done; shift; setsid "$@" >/dev/null 2>&1 &`,
		false: `echo "Failed to connect to bus: No such file or directory" >&2; exit 1`,
	}[works]
	if err := os.WriteFile(filepath.Join(dir, "systemd-run"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestUnitOfAResident: whose unit the keeper becomes, what systemd is told, and what follows where it does not help.
func TestUnitOfAResident(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                        string
		booted, root, linger, works bool
		unit, stop, why             string
	}{
		{"no systemd", false, true, true, true, "", "kill ", ""},
		{"root", true, true, false, true, "sgtune-night.service", "systemctl stop sgtune-night.service", ""},
		{"a user who lingers", true, false, true, true, "sgtune-night.service", "systemctl --user stop sgtune-night.service", ""},
		{"a user who does not", true, false, false, true, "", "kill ", `"loginctl enable-linger ada" changes that`},
		{"no bus", true, true, true, false, "", "kill ", "Failed to connect to bus"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := fakeSystemd(t, tt.works)
			_, r := settleHere(t, systemd{booted: tt.booted, root: tt.root, linger: tt.linger, user: "ada", path: dir}, "exec sleep 60")
			if r.Unit != tt.unit || !strings.HasPrefix(r.Stop(), tt.stop) || !strings.Contains(r.NoUnit, tt.why) || (tt.why == "") != (r.NoUnit == "") || !r.Kept {
				t.Errorf("%+v; to stop it: %s", r, r.Stop())
			}
			told, _ := os.ReadFile(filepath.Join(dir, "told")) // none where it was not asked
			for _, want := range []string{"--unit=sgtune-night.service", "--property=Restart=on-failure", "--property=KillMode=mixed", r.Folder} {
				if has := strings.Contains(string(told), want+"\n"); has != (tt.unit != "" || tt.name == "no bus") {
					t.Errorf("systemd was told %q", told)
				}
			}
		})
	}
}

// TestRealSystemd: the same with a real systemd, the user's, in name spaces of its own: the unit starts a keeper that was
// killed again, a stopped one stays stopped.
func TestRealSystemd(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: starts a systemd")
	}
	if os.Getenv("SGTUNE_TEST_SYSTEMD") != "" {
		underSystemd(t)
		return
	}
	const program = "/lib/systemd/systemd"
	if _, err := os.Stat(program); err != nil || os.Geteuid() != 0 {
		t.Skipf("it takes root, for name spaces of its own, and %s", program)
	}
	script := `set -u
mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib/systemd || exit 3
export XDG_RUNTIME_DIR=/run/user/0 SGTUNE_TEST_SYSTEMD=1
mkdir -p /run/systemd/system /var/lib/systemd/linger $XDG_RUNTIME_DIR/systemd/user
touch /var/lib/systemd/linger/root
printf '[Unit]\nDefaultDependencies=no\n' >$XDG_RUNTIME_DIR/systemd/user/tiny.target
` + program + ` --user --unit=tiny.target --log-target=console >"$1" 2>&1 &
for i in 1 2 3 4 5 6 7 8 9 10; do systemctl --user is-system-running >/dev/null 2>&1 && break; sleep 0.5; done
exec "$0" -test.run '^TestRealSystemd$' -test.v`
	log := filepath.Join(t.TempDir(), "systemd.log")
	out, err := exec.CommandContext(t.Context(), "unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c", script, os.Args[0], log).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestRealSystemd")) {
		said, _ := os.ReadFile(log) // more words for whoever reads this
		t.Errorf("%v\n%s\nsystemd: %s", err, out, said)
	}
}

func underSystemd(t *testing.T) {
	l, r := settleHere(t, thisSystemd(), "exec sleep 300")
	if r.Unit != "sgtune-night.service" || !r.OwnUnit || r.NoUnit != "" {
		t.Fatalf("%+v", r)
	}
	restarted := func(what string, changed func(now Resident) bool) Resident {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			list, err := l.Residents(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 1 && list[0].Server.PID > 0 && changed(list[0]) {
				return list[0]
			}
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("%s: %+v", what, list)
			}
		}
	}
	kill := func(words ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", words, err, out)
		}
	}
	pid := func(n int) string {
		return strings.TrimPrefix(procPath(n, ""), "/proc/")[:len(procPath(n, ""))-len("/proc/")-1]
	}
	kill("kill", "-9", pid(r.Server.PID))
	second := restarted("the server was killed", func(now Resident) bool { return now.Server.PID != r.Server.PID })
	kill("kill", "-9", pid(second.Keeper.PID))
	third := restarted("the keeper was killed", func(now Resident) bool { return now.Kept && now.Keeper.PID != second.Keeper.PID })
	if len(third.PIDs) != 1 {
		t.Errorf("more than one server: %+v", third)
	}
	kill(strings.Fields(third.Stop())...)
	time.Sleep(3 * time.Second) // RestartSec, and more
	if list, err := l.Residents(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("after %s: %+v, %v", third.Stop(), list, err)
	}
}

// TestBoundedLog: a full log begins anew, the part before is kept, and no more than that.
func TestBoundedLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "server.log")
	l := &boundedLog{path: path, limit: 100}
	defer l.close()
	for i := range 50 {
		if n, err := l.Write([]byte(strings.Repeat(string(rune('a'+i%26)), 19) + "\n")); n != 20 || err != nil {
			t.Fatal(n, err)
		}
	}
	now, err1 := os.ReadFile(path)
	before, err2 := os.ReadFile(path + ".1")
	if err1 != nil || err2 != nil || len(now) != 100 || len(before) != 100 || !bytes.HasSuffix(now, []byte("xxx\n")) || !bytes.HasSuffix(before, []byte("sss\n")) {
		t.Errorf("%v %v\n%s\n%s", err1, err2, now, before)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	lost := &boundedLog{path: filepath.Join(path, "no folder"), limit: 100}
	if n, err := lost.Write([]byte("x")); n != 1 || err != nil {
		t.Errorf("a log that cannot be written stops the server: %d, %v", n, err)
	}
}
