package sglang

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// versionScript prints the version of the sglang package that an interpreter would import, without
// importing it (that takes half a minute): from the package's own version file, else from its
// metadata. A source tree on PYTHONPATH wins over an installed package, as it does in the server.
const versionScript = `import importlib.metadata as m, importlib.util as u, pathlib, re
d = pathlib.Path(u.find_spec("sglang").origin).parent
t = "".join(p.read_text() for p in (d / "_version.py", d / "version.py") if p.is_file())
f = re.search(r"^__version__\s*=(?:\s*version\s*=)?\s*['\"]([^'\"]+)", t, re.M)
print("sglang version:", f.group(1) if f else m.version("sglang"))`

var pythonName = regexp.MustCompile(`^python[\d.]*$`)

// VersionCommands are the commands that print the version of the SGLang a server command starts,
// the quickest first. They are to be run where the server runs, with the server's environment; what
// they print is for ReadVersion. None when the command is a script whose inside is not seen: then
// InferVersion tells it from --help.
//
//   - env X=1 numactl -N0 python3 -m sglang.launch_server: the same words up to python3, then -c
//   - sglang serve, uv run sglang serve: the interpreter that the script's first line names, then
//     `sglang version`, which imports everything and exists from 0.5.9 on
func VersionCommands(command []string) [][]string {
	for i, word := range command {
		base := path.Base(word)
		head := slices.Clone(command[:i])
		switch {
		case pythonName.MatchString(base):
			return [][]string{append(head, word, "-c", versionScript)}
		case base == "sglang":
			// The words of a shell script: $0 is the program, $1 the Python script.
			const shebang = `exec $(sed -n '1s/^#!//p' "$(command -v "$0")") -c "$1"`
			return [][]string{
				append(head, "sh", "-c", shebang, word, versionScript),
				append(slices.Clone(command[:i]), word, "version"),
			}
		case strings.HasSuffix(base, ".py"), strings.HasSuffix(base, ".sh"):
			return nil
		}
	}
	return nil
}

var versionLine = regexp.MustCompile(`(?m)^sglang version:\s*(\S+)`)

// ReadVersion reads what one of VersionCommands printed. text is the version as spelt
// ("0.5.24rc1+cu129"). A build without a version (0.0.0.dev0) is an error: InferVersion may tell.
func ReadVersion(output string) (v Version, text string, err error) {
	m := versionLine.FindStringSubmatch(output)
	if m == nil {
		return Version{}, "", fmt.Errorf("no line \"sglang version: ...\" in %.80q", output)
	}
	v, err = ParseVersion(m[1])
	if err == nil && v.Major+v.Minor+v.Patch == 0 {
		err = fmt.Errorf("version %s says nothing: SGLang was built from a source tree without tags", m[1])
	}
	if err != nil {
		return Version{}, m[1], err
	}
	return v, m[1], nil
}

// Inference is which release a --help looks like.
type Inference struct {
	Version Version // the known release with the most options in common
	Options int     // options of the --help
	Extra   int     // options that the release does not have
	Missing int     // options of the release that the --help does not list
}

// Exact reports whether the --help lists exactly the release's options.
func (i Inference) Exact() bool { return i.Extra == 0 && i.Missing == 0 }

// String says it in words: "0.5.23", or how far off it is.
func (i Inference) String() string {
	if i.Exact() {
		return i.Version.String()
	}
	return fmt.Sprintf("nearest to %s (%d options more, %d fewer)", i.Version, i.Extra, i.Missing)
}

// InferVersion tells the release from the options that an installed server's --help lists, by the
// largest share of names in common. ok is false when even the nearest has less than two thirds in
// common: then the text is not SGLang's. Options of sgtune's own sim-server do not count.
func InferVersion(help Flags) (best Inference, ok bool) {
	listed := map[string]bool{}
	for name := range help {
		if name != "help" && !strings.HasPrefix(name, "sim-") {
			listed[name] = true
		}
	}
	r := known()
	bestShare := 0.0
	for i, flags := range r.flags {
		both, shown := 0, 0
		for name := range flags {
			if _, hidden := r.hidden[name]; hidden {
				continue
			}
			shown++
			if listed[name] {
				both++
			}
		}
		share := float64(both) / float64(len(listed)+shown-both)
		if share >= bestShare {
			bestShare = share
			best = Inference{Version: r.versions[i], Options: len(listed), Extra: len(listed) - both, Missing: shown - both}
		}
	}
	if bestShare < 2.0/3 {
		return Inference{}, false
	}
	return best, true
}
