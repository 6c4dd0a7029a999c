package host

import (
	"os"
	"path/filepath"
	"testing"
)

// The first step of a young job may come before its batch script, which is the one who starts keepers: until that has made
// the folder in which it is asked, the agent does not answer a ping, and the caller asks again.
func TestPingWaitsForTheBatchScript(t *testing.T) {
	t.Parallel()
	job := t.TempDir()
	a := &agent{ServeOptions: ServeOptions{Ask: filepath.Join(job, "ask")}}
	if _, err := a.ping(t.Context(), struct{}{}); err == nil {
		t.Error("answered before the batch script has begun")
	}
	if err := os.Mkdir(a.Ask, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ping(t.Context(), struct{}{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(job, "beat")); err != nil {
		t.Errorf("the batch script does not hear of us: %v", err)
	}
}
