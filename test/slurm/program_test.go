package slurm

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// program is the built sgtune, with the agent in it that the other tests use: nothing of the tree is written.
var program = sync.OnceValues(func() (string, error) {
	path := bed("sgtune")
	if err := embedAgent(); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-overlay", bed("overlay.json"), "-o", path, "sgtune/cmd/sgtune")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build sgtune: %w: %s", err, out)
	}
	return path, nil
})

// embedAgent writes the files of internal/agent/bin and the overlay that puts them there.
func embedAgent() error {
	b, err := os.ReadFile(os.Getenv(agentEnv))
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	name := "sgtune-agent-linux-" + runtime.GOARCH
	bin, err := filepath.Abs("../../internal/agent/bin")
	if err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(bin, name+".gz"): bed(name + ".gz"), filepath.Join(bin, "SHA256SUMS"): bed("SHA256SUMS"),
	}})
	return errors.Join(err,
		os.WriteFile(bed(name+".gz"), packed.Bytes(), 0o600),
		os.WriteFile(bed("SHA256SUMS"), fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(b), name), 0o600),
		os.WriteFile(bed("overlay.json"), overlay, 0o600),
	)
}
