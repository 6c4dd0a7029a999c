package arch_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTheAgentIsSmall keeps out of the program for other machines what it cannot have: cgo, and the libraries
// of the rest of sgtune.
func TestTheAgentIsSmall(t *testing.T) {
	t.Parallel()
	refused := []string{
		"runtime/cgo", "github.com/mattn/go-sqlite3", "github.com/NVIDIA/go-nvml", "github.com/spf13/", "github.com/c-bata/goptuna",
		"github.com/go-chi/", "github.com/goccy/", "mvdan.cc/", "database/sql", "html/template", "net/http/pprof",
	}
	ours := map[string]bool{module + "/cmd/sgtune-agent": true, module + "/internal/replayjob": true, module + "/benchmark": true, module + "/host": true, module + "/sglang": true}
	for _, arch := range []string{"amd64", "arm64"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"/cmd/sgtune-agent")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list -deps: %v", err)
		}
		found := strings.Fields(string(out))
		if len(found) < 50 {
			t.Fatalf("only %d packages: %v", len(found), found)
		}
		for _, pkg := range found {
			if strings.HasPrefix(pkg, module+"/") && !ours[pkg] {
				t.Errorf("linux/%s: the agent is made of %s, which is not for it", arch, pkg)
			}
			for _, r := range refused {
				if pkg == r || strings.HasPrefix(pkg, strings.TrimSuffix(r, "/")+"/") {
					t.Errorf("linux/%s: the agent is made of %s", arch, pkg)
				}
			}
		}
	}
}
