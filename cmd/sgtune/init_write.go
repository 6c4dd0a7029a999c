package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sgtune/internal/launch"
	"sgtune/sglang"
)

// checkOutput refuses to overwrite before anything is read or asked.
func checkOutput(path string, force bool) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return usagef("-o %s is a folder; name a file in it", path)
	case err == nil && !force:
		return usagef("%s exists already; choose another name, or overwrite it with --force", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return usagef("-o: %w", err)
	}
	return nil
}

// workloadPath is the workload as the study file names it: relative to the study file.
func workloadPath(workload, output string) (string, error) {
	if workload == "" {
		return "", nil
	}
	if info, err := os.Stat(workload); err != nil || info.IsDir() {
		return "", usagef("--workload %s is no file that can be read; name the file with your requests", workload)
	}
	if output == "" || filepath.IsAbs(workload) {
		return workload, nil
	}
	from, err := filepath.Abs(filepath.Dir(output))
	if err != nil {
		return workload, nil //nolint:nilerr // the plain path is right when the study lies here
	}
	to, err := filepath.Abs(workload)
	if err != nil {
		return workload, nil //nolint:nilerr // as above
	}
	if rel, err := filepath.Rel(from, to); err == nil {
		return rel, nil
	}
	return to, nil
}

// writeWhole writes a file completely or not at all; it overwrites only when told to.
func writeWhole(path string, text []byte, force bool) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".sgtune-init-*")
	if err != nil {
		return usagef("write %s: %w", path, err)
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // gone already when all went well
	_, err = temp.Write(text)
	if err := errors.Join(err, temp.Chmod(0o644), temp.Close()); err != nil {
		return usagef("write %s: %w", path, err)
	}
	if !force {
		if err := os.Link(temp.Name(), path); errors.Is(err, fs.ErrExist) {
			return usagef("%s exists already; choose another name, or overwrite it with --force", path)
		} else if err == nil {
			return nil
		} // a file system without links: rename
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return usagef("write %s: %w", path, err)
	}
	return nil
}

// printInit says what was found, what is worth knowing, and what comes next.
func printInit(out io.Writer, p *launch.Plan, f initFlags) error {
	w := &lineWriter{out: out}
	say := func(format string, args ...any) {
		w.line("%s", oneLine(p.Hide(sglang.Mask(fmt.Sprintf(format, args...)))))
	}
	if f.from != "" {
		place := ""
		if p.From != "" {
			place = " (" + p.From + ")"
		}
		if p.Launch.Line > 0 {
			place = fmt.Sprintf(" (%s, line %d)", p.From, p.Launch.Line)
		}
		say("Read a %s%s: model %s, SGLang %s.", p.Launch.Kind, place, p.Model, versionText(p))
		say("Kept %s, %s in the baseline; %s left out as SGLang's defaults, %s for other reasons.",
			count(len(p.Flags), "fixed flag"), count(len(p.Baseline), "value"), count(len(p.Defaults), "flag"), count(len(p.Left), "flag"))
	}
	if len(p.Warnings) > 0 {
		say("Worth knowing (also at the head of the file):")
	}
	for _, text := range p.Warnings {
		say("  - %s", text)
	}
	var missing []string
	if strings.Contains(p.Model, "FILL-IN") || strings.Contains(p.Model, "$") {
		missing = append(missing, "server.model")
	}
	for _, e := range append(p.Left, p.LeftEnv...) {
		if strings.HasPrefix(e.Comment, "FILL IN") {
			missing = append(missing, e.Name)
		}
	}
	if b := p.Box; b != nil {
		if strings.Contains(b.Image, "FILL-IN") {
			missing = append(missing, "server.container.image")
		}
		for _, e := range b.Left {
			if strings.HasPrefix(e.Comment, "FILL IN") {
				missing = append(missing, e.Name+" in server.container.args")
			}
		}
	}
	if p.Workload == "" {
		missing = append(missing, "workload.file (the requests to replay)")
	}
	if len(missing) > 0 {
		say("To fill in: %s.", strings.Join(missing, ", "))
	}
	name := f.output
	if name == "" {
		name = "FILE"
	}
	say("Next: sgtune check %s", shellWord(name))
	return w.err
}

func versionText(p *launch.Plan) string {
	if p.Assumed {
		return p.Version.String() + " assumed"
	}
	return p.Version.String()
}
