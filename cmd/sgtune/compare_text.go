package main

import (
	"fmt"
	"strings"

	"sgtune/benchmark"
	"sgtune/web"
)

// text is the answer in one sentence.
func (c *comparison) text() string {
	r, row := &c.result, c.result.Rows[0]
	for _, s := range c.sides {
		if len(s.launches) > 0 {
			continue
		}
		why := "nothing to compare"
		if len(s.out) > 0 {
			why = s.out[0].Name + ": " + s.out[0].Why
		}
		return fmt.Sprintf("not confirmed: %s has no %s that counts (%s)", s.role, s.noun, why)
	}
	values := fmt.Sprintf("%s %s against %s", row.metric.label, row.metric.amount(*row.Candidate), row.metric.amount(*row.Base))
	if row.Change != nil {
		values += ", " + percent(*row.Change)
	}
	each := fmt.Sprintf("%s of base, %d of candidate", count(r.N[0], c.sides[0].noun), r.N[1])
	if r.N[0] == r.N[1] {
		each = fmt.Sprintf("%s each", count(r.N[0], c.sides[0].noun))
	}
	switch r.Answer {
	case benchmark.AnswerBetter, benchmark.AnswerWorse:
		return fmt.Sprintf("%s: %s, 95%% interval %s to %s; %s%s", r.Answer, values, percent(*row.Low), percent(*row.High), each, c.rankText())
	case benchmark.AnswerNoDifference:
		text := fmt.Sprintf("%s: %s, 95%% interval %s to %s; %s could have shown %.1f%%%s",
			r.Answer, values, percent(*row.Low), percent(*row.High), each, 100**r.Detectable, c.rankText())
		if r.Needed > min(r.N[0], r.N[1]) {
			text += fmt.Sprintf("; about %d fresh ones of each side would show the difference seen", r.Needed)
		}
		return text
	}
	return "not confirmed: " + values + "; " + c.missing(each)
}

// missing says why there is no answer and what would give one.
func (c *comparison) missing(each string) string {
	for _, s := range c.sides {
		if s.failed > mostFailed {
			return fmt.Sprintf("%s of %s failed or are not valid, and those that are left may be the lucky ones: look at them first", count(s.failed, s.noun), s.role)
		}
	}
	if min(c.result.N[0], c.result.N[1]) >= benchmark.LeastLaunches {
		return "a value of 0 has no ratio to another"
	}
	var more []string
	for i, s := range c.sides {
		if n := benchmark.LeastLaunches - c.result.N[i]; n > 0 {
			more = append(more, fmt.Sprintf("%d more of %s", n, s.role))
		}
	}
	text := fmt.Sprintf("%s cannot tell a difference from chance; an answer needs %d of each side: %s", each, benchmark.LeastLaunches, strings.Join(more, " and "))
	if c.studies[0] != nil || c.studies[1] != nil {
		return text + "; a study takes them of its baseline and its best candidate, in its confirmation"
	}
	return text + ", taken in turns"
}

// rankText is the rank test beside the interval.
func (c *comparison) rankText() string {
	if p := c.result.MannWhitneyP; p != nil {
		return fmt.Sprintf("; Mann-Whitney p = %.3g", *p)
	}
	return ""
}

// amount is a value with its unit.
func (m metric) amount(v float64) string {
	if m.unit == "" {
		return web.Number(v)
	}
	return web.Number(v) + " " + m.unit
}

// percent is a relative change.
func percent(x float64) string { return signed(100*x) + "%" }

// signed is a number with one decimal and its sign; what rounds to nothing has none.
func signed(x float64) string {
	if text := fmt.Sprintf("%+.1f", x); text != "-0.0" && text != "+0.0" {
		return text
	}
	return "0.0"
}
