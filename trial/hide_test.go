package trial

import (
	"fmt"
	"strings"
	"testing"

	"sgtune/benchmark"
)

func TestHidden(t *testing.T) {
	t.Parallel()
	r := &Runner{Secrets: []string{"opensesame", "of"}}
	v := r.hiddenVerdict(Verdict{
		Text: "cannot log in with opensesame", Evidence: "ValueError: opensesame of hf_AbCdEf0123456789", RejectedFlags: []string{"--x=opensesame"},
		Findings: []Finding{{"a", "b opensesame"}}, Outcome: Crashed,
	})
	report := benchmark.Report{Errors: []string{"status 400: opensesame"}, Valid: true}
	r.hideIn(&report)
	r.hideIn(nil)
	all := fmt.Sprintf("%+v %+v %s", v, report, r.hidden("word opensesame"))
	if strings.Contains(all, "sesame") || strings.Contains(all, "hf_A") || !strings.Contains(all, "*** of ***") || v.Outcome != Crashed || !report.Valid {
		t.Errorf("got %s", all)
	}
}
