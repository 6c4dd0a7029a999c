package hosttest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// BuildSgtune builds sgtune as out with the agent of a file in it: nothing of the tree is written, for go build takes the
// agent's place in the tree from a folder of its own beside out. root is the module's folder.
func BuildSgtune(root, out, agent string) error {
	b, err := os.ReadFile(agent)
	if err != nil {
		return fmt.Errorf("read the agent: %w", err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("pack the agent: %w", err)
	}
	bin, err := filepath.Abs(filepath.Join(root, "internal", "agent", "bin"))
	if err != nil {
		return fmt.Errorf("find the agents' folder: %w", err)
	}
	dir, name, sum := out+".agent", "sgtune-agent-linux-"+runtime.GOARCH, sha256.Sum256(b)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(bin, name+".gz"): filepath.Join(dir, name+".gz"), filepath.Join(bin, "SHA256SUMS"): filepath.Join(dir, "SHA256SUMS"),
	}})
	err = errors.Join(err, os.MkdirAll(dir, 0o700))
	for file, text := range map[string][]byte{
		name + ".gz": packed.Bytes(), "SHA256SUMS": []byte(hex.EncodeToString(sum[:]) + "  " + name + "\n"), "overlay.json": overlay,
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	if err != nil {
		return fmt.Errorf("write the agent to be built in: %w", err)
	}
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", out, "sgtune/cmd/sgtune")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build sgtune: %w: %s", err, said)
	}
	return nil
}
