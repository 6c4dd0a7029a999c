package trial

import (
	"slices"
	"strings"

	"sgtune/benchmark"
	"sgtune/sglang"
)

// hidden masks a text: the exact secrets of the study first, then whatever gives itself away. Shorter ones
// than 4 bytes would hit ordinary words.
func (r *Runner) hidden(text string) string {
	const least = 4
	for _, secret := range r.Secrets {
		if len(secret) >= least {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return sglang.Mask(text)
}

// hiddenVerdict masks what a verdict quotes: the reader of the log sees it as it was printed.
func (r *Runner) hiddenVerdict(v Verdict) Verdict {
	v.Text, v.Evidence = r.hidden(v.Text), r.hidden(v.Evidence)
	v.RejectedFlags = slices.Clone(v.RejectedFlags)
	for i := range v.RejectedFlags {
		v.RejectedFlags[i] = r.hidden(v.RejectedFlags[i])
	}
	v.Findings = slices.Clone(v.Findings)
	for i := range v.Findings {
		v.Findings[i].Text = r.hidden(v.Findings[i].Text)
	}
	return v
}

// hideIn masks what a report quotes of the server's answers; nil has nothing to hide.
func (r *Runner) hideIn(report *benchmark.Report) {
	if report == nil {
		return
	}
	for i := range report.Errors {
		report.Errors[i] = r.hidden(report.Errors[i])
	}
	report.Advice = r.hidden(report.Advice)
}
