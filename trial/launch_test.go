package trial

import (
	"slices"
	"strings"
	"testing"

	"sgtune/sglang"
)

func TestArgv(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server sglang.Server
		want   string
	}{
		{"ours", sglang.Server{Command: []string{"sglang", "serve"}, Model: "m"}, "sglang serve --model-path m --mem-fraction-static 0.9 --host 127.0.0.1 --port 31000 --enable-metrics"},
		{"the user placed the port", sglang.Server{Command: []string{"run.sh", "--listen=:{port}"}}, "run.sh --listen=:31000 --mem-fraction-static 0.9 --host 127.0.0.1 --enable-metrics"},
		{"the user gave host and port", sglang.Server{Command: []string{"x", "--port=31000"}, Flags: sglang.Config{"host": "0.0.0.0"}}, "x --port=31000 --host 0.0.0.0 --mem-fraction-static 0.9 --enable-metrics"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := &attempt{Runner: &Runner{Server: c.server, Instruments: []string{"--enable-metrics"}}, t: &Trial{Config: sglang.Config{"mem-fraction-static": 0.9}, Port: 31000}}
			if got := strings.Join(a.argv(), " "); got != c.want {
				t.Errorf("argv %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestMaskArgv(t *testing.T) {
	t.Parallel()
	a := &attempt{Runner: &Runner{Secrets: []string{"hunter22", "x"}}}
	got := a.maskArgv([]string{"serve", "--api-key", "abcdef", "--admin-api-key=ghijkl", "--url", "http://u:hunter22@h", "--tp-size", "8", "--served-model-name", "key of x"})
	text := strings.Join(got, " ")
	for _, secret := range []string{"abcdef", "ghijkl", "hunter22"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is still in %s", secret, text)
		}
	}
	if !slices.Contains(got, "8") || !slices.Contains(got, "key of x") || len(got) != 10 {
		t.Errorf("more than secrets was changed: %q", got)
	}
}

func TestStudyOf(t *testing.T) {
	t.Parallel()
	for marker, want := range map[string]string{
		"night.7.1767300000000000000": "night", "a.b.c.0.5": "a.b.c", "night": "", "night.7": "", "x.y.z": "", "": "", "night.7.-5": "night",
	} {
		if got := studyOf(marker); got != want {
			t.Errorf("%q belongs to %q, want %q", marker, got, want)
		}
	}
	tr := &Trial{Study: "a.2", Number: 3}
	if got := studyOf(marker(tr)); got != "a.2" {
		t.Errorf("own marker belongs to %q", got)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		server      sglang.Server
		user, admin string
	}{
		{"none", sglang.Server{Command: []string{"sglang", "serve"}}, "", ""},
		{"flags", sglang.Server{Flags: sglang.Config{"api-key": "a b", "admin-api-key": 12345.0}}, "a b", "12345"},
		{"two words", sglang.Server{Command: []string{"sglang", "serve", "--api-key", "k1", "--admin-api-key=k2"}}, "k1", "k2"},
		{"a shell's", sglang.Server{Command: []string{"sh", "-c", `exec sglang serve --api-key 'k1' "$@"`, "sh"}}, "k1", ""},
		{"flags come last", sglang.Server{Command: []string{"x", "--api-key", "old"}, Flags: sglang.Config{"api-key": "new"}}, "new", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if user, admin := serverKeys(c.server, nil); user != c.user || admin != c.admin {
				t.Errorf("keys %q and %q, want %q and %q", user, admin, c.user, c.admin)
			}
		})
	}
	if got := bearer("k").Get("Authorization"); got != "Bearer k" || bearer("") != nil {
		t.Errorf("header %q", got)
	}
}
