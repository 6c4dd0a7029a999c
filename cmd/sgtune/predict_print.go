package main

import (
	"fmt"
	"io"
	"strings"
)

// print writes the prediction for a person.
func (r *predictResult) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Based on %s. One token is %s bytes a rank", r.BasedOn, grouped(int(r.CellBytes+0.5)))
	if r.kind != "" {
		fmt.Fprintf(&b, " (%s)", r.kind)
	}
	b.WriteString(".\n\n")
	r.table(&b)
	b.WriteByte('\n')
	r.advice(&b)
	r.hostText(&b)
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table is one line a fraction. Columns without content are left out.
func (r *predictResult) table(b *strings.Builder) {
	head := []string{"mem-fraction-static", "KV tokens", "from - to"}
	free, host := false, false
	for _, row := range r.Rows {
		free, host = free || row.Free != nil, host || row.HostGB > 0
	}
	if r.ContextLen > 0 {
		head = append(head, "full-length requests")
	}
	if free {
		head = append(head, "free after graphs")
	}
	if host {
		head = append(head, "host pool a rank")
	}
	rows := [][]string{append(head, "")}
	for _, row := range r.Rows {
		cells := []string{fmt.Sprintf("%.4g", row.Fraction), grouped(row.Tokens), grouped(row.Low) + " - " + grouped(row.High)}
		if row.Fraction == r.observed {
			cells[0] = "observed " + cells[0]
		}
		if r.ContextLen > 0 {
			cells = append(cells, fmt.Sprintf("%.2f", row.Requests))
		}
		if free {
			cells = append(cells, freeText(row))
		}
		if host {
			cells = append(cells, fmt.Sprintf("%.4g GB", row.HostGB))
		}
		rows = append(rows, append(cells, row.Warning))
	}
	alignRight(b, rows)
}

func freeText(row predictRow) string {
	switch {
	case row.Free == nil:
		return "-"
	case *row.FreeHigh-*row.FreeLow > 1: // an estimate
		return fmt.Sprintf("%.1f - %.1f GiB", max(0, *row.FreeLow), max(0, *row.FreeHigh))
	}
	return fmt.Sprintf("%.2f GiB", *row.Free)
}

// alignRight writes columns, all but the last one right-aligned.
func alignRight(b *strings.Builder, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		last := len(row) - 1
		for i, cell := range row[:last] {
			if i > 0 {
				line.WriteString("  ")
			}
			fmt.Fprintf(&line, "%*s", width[i], cell)
		}
		if row[last] != "" {
			line.WriteString("  " + row[last])
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// advice is what to make of the table.
func (r *predictResult) advice(b *strings.Builder) {
	lowest := fmt.Sprintf("%.3f", r.Lowest)
	if r.LowestHigh-r.LowestLow > 0.002 {
		lowest = fmt.Sprintf("%.3f (%.3f to %.3f)", r.Lowest, r.LowestLow, r.LowestHigh)
	}
	fmt.Fprintf(b, "Lowest workable fraction: above %s; at or below it the weights leave no memory for the KV cache.\n", lowest)
	best := r.best()
	need := tightPerToken * float64(r.chunk)
	switch {
	case best == nil:
		fmt.Fprintf(b, "None of these fractions is sure to work: take one above the lowest, a smaller chunked-prefill-size, or more GPUs.\n")
	case best.Free != nil:
		fmt.Fprintf(b, "Highest of these that leaves room to prefill chunks of %s tokens (%.1f GiB or more free): %.4g, %s KV tokens.\n", grouped(r.chunk), need, best.Fraction, grouped(best.Tokens))
	default:
		fmt.Fprintf(b, "Nothing here tells the free GPU memory, so the highest fraction that is safe in prefill is not known.\n")
	}
	if r.auto.Fraction > 0 && r.auto.ReservedMiB > 0 {
		fmt.Fprintf(b, "SGLang's own choice on this GPU would be about %.3f (lower for multimodal models).\n", r.auto.Fraction)
	}
	if r.Pools > 1 {
		fmt.Fprintf(b, "Figures are of one of %d data-parallel pools; all together hold %d times as many tokens.\n", r.Pools, r.Pools)
	}
}

// best is the highest fraction that is safe.
func (r *predictResult) best() *predictRow {
	var best *predictRow
	for i := range r.Rows {
		if row := &r.Rows[i]; row.safe && (best == nil || row.Fraction > best.Fraction) {
			best = row
		}
	}
	return best
}

func (r *predictResult) hostText(b *strings.Builder) {
	h := r.Host
	if h.PerRank <= 0 {
		return
	}
	fmt.Fprintf(b, "Host RAM: %s x %.4g GB a rank = %.4g GB, %s tokens a rank", count(h.ranks, "rank"), h.PerRank, h.Total, grouped(h.Tokens))
	if h.Extra > 0 {
		fmt.Fprintf(b, "; index and draft pools beside it take %.4g GB more", h.Extra)
	}
	switch {
	case h.Fits == nil:
		b.WriteString(". Give --host-ram to see whether it fits.\n")
	case *h.Fits:
		fmt.Fprintf(b, ". It fits (at most %.0f GB a rank do).\n", *h.Most)
	default:
		fmt.Fprintf(b, ". It does not fit: %s. Take at most hicache-size %.0f.\n", strings.TrimPrefix(h.Why, "host RAM: "), *h.Most)
	}
	if h.Fits != nil && !*h.Fits && h.Own == "passes SGLang's own check" {
		b.WriteString("SGLang's own check lets it through all the same: each rank looks at its own request. The host would run out of memory.\n")
	}
}

// grouped spells a number with commas: 159,277.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
