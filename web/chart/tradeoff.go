package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// tradeoff are the indexes of rows with both a value and a wait, and those of them that no other beats in both, the
// fastest first.
func (d *Data) tradeoff() (all, front []int) {
	for i := range d.Rows {
		if r := &d.Rows[i]; r.counts() && !math.IsNaN(r.TTFT) {
			all = append(all, i)
		}
	}
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b int) int {
		if c := cmp.Compare(d.Rows[b].Value, d.Rows[a].Value); c != 0 {
			return c
		}
		return cmp.Compare(d.Rows[a].TTFT, d.Rows[b].TTFT)
	})
	least := math.Inf(1)
	for _, i := range order {
		if d.Rows[i].TTFT < least {
			front, least = append(front, i), d.Rows[i].TTFT
		}
	}
	return all, front
}

func (d *Data) tradeoffSentence() string {
	all, front := d.tradeoff()
	if len(front) == 0 {
		return "No trial has both a value and a TTFT yet."
	}
	fast, calm := &d.Rows[front[0]], &d.Rows[front[len(front)-1]]
	text := fmt.Sprintf("No other trial of %s is faster than trial %d (%s, TTFT p95 %s)", Number(float64(len(all))), fast.Number, d.amount(fast.Value), seconds(fast.TTFT))
	if fast == calm {
		return text + ", and none waits less."
	}
	return text + fmt.Sprintf("; trial %d waits least: %s at %s.", calm.Number, seconds(calm.TTFT), Number(calm.Value))
}

func (d *Data) tradeoffTable(most int) Table {
	all, front := d.tradeoff()
	t := Table{most: most, page: 3, Caption: "Speed against wait", Head: []string{"Trial", d.Unit(), "TTFT p95", "Beaten in both"}}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(d.Rows[b].Value, d.Rows[a].Value) })
	unbeaten := map[int]bool{}
	for _, i := range front {
		unbeaten[i] = true
	}
	for _, i := range all {
		beaten := "yes"
		if unbeaten[i] {
			beaten = "no"
		}
		r := &d.Rows[i]
		t.add(d.trialCell(r), Cell{Text: Number(r.Value)}, Cell{Text: seconds(r.TTFT)}, Cell{Text: beaten})
	}
	return t
}
