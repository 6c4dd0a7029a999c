package trial_test

import (
	"bytes"
	"testing"
)

// FuzzClassify: no log and no context make the classifier panic or leave its vocabulary, and the same
// input gives the same verdict.
func FuzzClassify(f *testing.F) {
	const seed, every = 4 << 10, 4 // few and small seeds are mutated faster
	for i, path := range fixtures(f) {
		if i%every == 0 {
			log, want := loadFixture(f, path)
			f.Add(log[max(0, len(log)-seed):], []byte(want.Context))
		}
	}
	f.Add([]byte(""), []byte(`{"alive": null, "probes": [{"status": "refused"}, {"status": 1e99}], "nvml_used_gb_before": 1e300, "workload": [1], "control": "x"}`))
	f.Add([]byte("Killed"), []byte(`{"exit_code": 137, "elapsed_s": -1e300, "children_dead": ["a"], "env": {"http_proxy": "x"}}`))
	f.Fuzz(func(t *testing.T, log, context []byte) {
		v, err := diagnose(log, context)
		if err != nil {
			return // a context that cannot be read is refused, with its key
		}
		inVocabulary(t, v)
		a, err := v.JSON()
		if err != nil {
			t.Fatalf("the verdict has no JSON: %v", err)
		}
		again, err := diagnose(log, context)
		if err != nil {
			t.Fatalf("the second time: %v", err)
		}
		if b, err := again.JSON(); err != nil || !bytes.Equal(a, b) {
			t.Errorf("two verdicts of one input:\n%s\n%s\n%v", a, b, err)
		}
	})
}
