package sglang_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
)

func TestTranslate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, version string
		c, base       sglang.Config
		want          sglang.Config
		notes         string // one word group that the notes must have; "" = no notes
		problem       string
	}{
		{
			name: "a new name for an old server", version: "0.5.9",
			c: sglang.Config{"cuda-graph-max-bs-decode": 64.0, "tp-size": 4.0}, want: sglang.Config{"cuda-graph-max-bs": 64.0, "tp-size": 4.0},
			notes: "cuda-graph-max-bs-decode is called cuda-graph-max-bs in this version",
		},
		{
			name: "an old name for a new server", version: "0.5.23",
			c: sglang.Config{"cuda-graph-max-bs": 64.0, "env.NCCL_ALGO": "Ring"}, want: sglang.Config{"cuda-graph-max-bs-decode": 64.0, "env.NCCL_ALGO": "Ring"},
			notes: "is called cuda-graph-max-bs-decode",
		},
		{
			name: "a flag that became a value", version: "0.5.9",
			c: sglang.Config{"enable-deepep-moe": true}, want: sglang.Config{"moe-a2a-backend": "deepep"}, notes: "--moe-a2a-backend deepep is passed instead",
		},
		{
			name: "as large as another", version: "0.5.9",
			c: sglang.Config{"enable-ep-moe": true}, base: sglang.Config{"tp-size": 8.0}, want: sglang.Config{"ep-size": 8.0}, notes: "--ep-size 8",
		},
		{
			name: "a flag that is off", version: "0.5.9",
			c: sglang.Config{"enable-ep-moe": false}, want: sglang.Config{}, notes: "left out",
		},
		{
			name: "deprecated but taken", version: "0.5.23",
			c: sglang.Config{"enable-dp-attention": true, "dp-size": 4.0}, want: sglang.Config{"enable-dp-attention": true, "dp-size": 4.0},
		},
		{
			name: "a value that has another word", version: "0.5.20",
			c: sglang.Config{"prefill-cp-mode": "in-seq-split"}, want: sglang.Config{"cp-strategy": "zigzag"}, notes: "--cp-strategy zigzag",
		},
		{
			name: "gone for good", version: "0.5.23",
			c: sglang.Config{"torchao-config": "int4wo-128"}, want: sglang.Config{"torchao-config": "int4wo-128"}, problem: "no flag --torchao-config",
		},
		{
			name: "an environment variable took its place", version: "0.5.15",
			c:    sglang.Config{"enable-nan-detection": true},
			want: sglang.Config{"env.SGLANG_SPEC_NAN_DETECTION": "1", "env.SGLANG_SPEC_OOB_DETECTION": "1"}, notes: "passed instead",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			flags, _ := sglang.FlagsOf(version(t, tt.version))
			got, notes, problems := sglang.Translate(tt.c, tt.base, flags)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			all := strings.Join(notes, "\n")
			if !strings.Contains(all, tt.notes) || tt.notes == "" && all != "" {
				t.Errorf("notes %q, want %q", all, tt.notes)
			}
			if (len(problems) > 0) != (tt.problem != "") || len(problems) > 0 && !strings.Contains(problems[0].Text, tt.problem) {
				t.Errorf("problems %v, want %q", problems, tt.problem)
			}
		})
	}
}

// Translate leaves every option of a release alone in that release, but for its own deprecated
// aliases.
func TestTranslateKeepsWhatFits(t *testing.T) {
	t.Parallel()
	for _, v := range sglang.Releases() {
		flags, _ := sglang.FlagsOf(v)
		for name, f := range flags {
			if f.Deprecated || name != f.Canonical {
				continue
			}
			if got, notes, _ := sglang.Translate(sglang.Config{name: "x"}, nil, flags); got[name] != "x" || len(notes) > 0 {
				t.Errorf("%s in %s became %v with %v", name, v, got, notes)
			}
		}
	}
}
