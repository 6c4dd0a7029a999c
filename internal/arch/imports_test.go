package arch_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "sgtune"

// allowed lists what each package of ours may import of ours. Everything not named here is refused.
var allowed = map[string][]string{
	"sglang":             {},
	"host":               {},
	"benchmark":          {},
	"trial":              {"sglang", "benchmark", "host"},
	"tuner/physics":      {"sglang"},
	"tuner":              {"sglang", "benchmark", "trial", "tuner/physics"},
	"store":              {"sglang", "benchmark", "trial", "tuner"},
	"export":             {"sglang"},
	"web":                {"sglang", "benchmark", "trial", "tuner", "export", "web/chart"},
	"web/chart":          {"sglang", "trial", "tuner"},
	"internal/simulator": {"sglang"},
	"internal/launch":    {"sglang"},
	"internal/replayjob": {"benchmark"},
	"internal/agent":     {"benchmark", "internal/replayjob"},
	"internal/arch":      {},
	"internal/hosttest":  {"host"},
	"internal/freeport":  {},
	"cmd/sgtune-agent":   {"sglang", "host", "benchmark", "internal/replayjob"},
	"cmd/sgtune":         {"sglang", "host", "benchmark", "trial", "tuner", "tuner/physics", "store", "export", "web", "internal/launch", "internal/simulator", "internal/agent", "internal/replayjob"},
}

// owners names the only packages that may import an outside library (its import path or a path below it).
var owners = map[string][]string{
	"github.com/c-bata/goptuna":     {"tuner"},
	"github.com/mattn/go-sqlite3":   {"store"},
	"github.com/go-chi/chi":         {"web"},
	"github.com/NVIDIA/go-nvml":     {"host"},
	"github.com/goccy/go-yaml":      {"tuner", "web", "export", "internal/launch", "internal/simulator"},
	"mvdan.cc/sh":                   {"internal/launch"},
	"github.com/spf13/cobra":        {"cmd/sgtune"},
	"golang.org/x/term":             {"cmd/sgtune"},
	"github.com/klauspost/compress": {"cmd/sgtune"},
	"golang.org/x/sys":              {"host", "internal/simulator", "internal/hosttest"},
	"gonum.org/v1/gonum":            {"benchmark", "tuner", "tuner/physics"},
}

type listed struct {
	ImportPath string
	Dir        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Imports,GoFiles", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if strings.HasPrefix(name, "test") || strings.HasPrefix(name, "examples") {
			continue // slow tiers and generators: they import what they prove
		}
		may, known := allowed[name]
		if !known {
			t.Errorf("package %s is not in the layout: add it to ARCHITECTURE.md and here, or move its code", name)
			continue
		}
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, module+"/"); ok && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s: arrows point down only", name, ours)
			}
			for lib, homes := range owners {
				if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !slices.Contains(homes, name) {
					t.Errorf("%s imports %s, which belongs to %v", name, imp, homes)
				}
			}
		}
	}
}

func TestOneFileOwnsGoptuna(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../tuner/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(f)
		if strings.Contains(string(text), `"github.com/c-bata/goptuna`) && base != "goptuna.go" && base != "sobol.go" && !strings.HasSuffix(base, "_test.go") {
			t.Errorf("%s imports goptuna; only goptuna.go (TPE) and sobol.go (Sobol points) may", base)
		}
	}
}

func TestEveryPackageHasADoc(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if _, err := os.Stat(filepath.Join(p.Dir, "doc.go")); err != nil {
			t.Errorf("%s has no doc.go: %v", p.ImportPath, err)
		}
	}
}

// TestTheWayOfOneTrial keeps the files a new engineer reads first short.
func TestTheWayOfOneTrial(t *testing.T) {
	t.Parallel()
	for _, f := range []string{"README.md", "ARCHITECTURE.md", "tuner/loop.go", "trial/runner.go", "trial/state.go", "trial/verdict.go", "store/trial.go"} {
		text, err := os.ReadFile(filepath.Join("../..", f))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if n := strings.Count(string(text), "\n"); n >= 200 {
			t.Errorf("%s has %d lines; the ten-minute path allows fewer than 200", f, n)
		}
	}
}
