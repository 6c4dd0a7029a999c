package launch

import (
	"os/exec"
	"path/filepath"
	"regexp"
)

var distInfo = regexp.MustCompile(`/sglang-(\d[0-9A-Za-z.+]*)\.dist-info$`)

// InstalledVersion finds the version of the SGLang that a command would start on this machine, by the
// package beside its python; nothing is run. "" when it cannot be seen.
func (l Launch) InstalledVersion() string {
	first, _, ok := launcher(l.Command)
	if !ok || l.Container != nil {
		return ""
	}
	program := l.Command[first]
	if !filepath.IsAbs(program) {
		found, err := exec.LookPath(program)
		if err != nil {
			return ""
		}
		program = found
	}
	root := filepath.Dir(filepath.Dir(program))
	for _, lib := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages", "local/lib/python3*/dist-packages", "lib/python3/dist-packages"} {
		found, err := filepath.Glob(filepath.Join(root, lib, "sglang-*.dist-info"))
		if err != nil || len(found) != 1 {
			continue
		}
		if m := distInfo.FindStringSubmatch(found[0]); m != nil {
			return m[1]
		}
	}
	return ""
}
