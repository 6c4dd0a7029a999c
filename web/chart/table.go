package chart

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// shown is how many rows of a table stand on a page; the rest is in the CSV.
const shown = 50

// Cell is one cell of a table.
type Cell struct {
	Text  string
	Trial int // number of the trial it links to, -1 = none
	Class int // shape before the text, -1 = none
	plain string
}

// Table holds the rows behind a chart.
type Table struct {
	Caption string
	Head    []string
	Rows    [][]Cell
	Total   int // rows there are; those beyond the limit are only counted

	most int // rows kept, 0 = all
	page int // columns shown on a page, the first; 0 = all. The CSV has all.
}

// add appends a row. Its cells link nowhere and have no shape unless trialCell or outcomeCell made them.
func (t *Table) add(cells ...Cell) {
	for i := range cells {
		if cells[i].plain == "" { // made here, not by trialCell or outcomeCell
			cells[i].Trial, cells[i].Class = -1, -1
		}
	}
	if t.Total++; t.most == 0 || t.Total <= t.most {
		t.Rows = append(t.Rows, cells)
	}
}

// text appends a row of words.
func (t *Table) text(words ...string) {
	cells := make([]Cell, len(words))
	for i, w := range words {
		cells[i].Text = w
	}
	t.add(cells...)
}

// Heads are the headings shown on a page.
func (t Table) Heads() []string { return t.Head[:t.columns()] }

// Shown are the cells shown on a page, by row.
func (t Table) Shown() [][]Cell {
	out := make([][]Cell, len(t.Rows))
	for i, row := range t.Rows {
		out[i] = row[:t.columns()]
	}
	return out
}

func (t Table) columns() int {
	if t.page == 0 {
		return len(t.Head)
	}
	return t.page
}

// More is how many rows are only in the CSV.
func (t Table) More() int { return t.Total - len(t.Rows) }

// Shape is a cell's shape, "" for none.
func (c Cell) Shape() string {
	if c.Class < 0 {
		return ""
	}
	return Classes[c.Class].Shape
}

// Key names a cell's colour, "" for none.
func (c Cell) Key() string {
	if c.Class < 0 {
		return ""
	}
	return Classes[c.Class].Key
}

func (d *Data) trialCell(r *Row) Cell {
	text := strconv.Itoa(r.Number)
	if w := role(r.Role); w != "" {
		text += " " + w
	}
	return Cell{Text: text, Trial: r.Number, Class: -1, plain: strconv.Itoa(r.Number)}
}

func (d *Data) outcomeCell(r *Row) Cell {
	text := Classes[r.Class].Word
	if r.Void {
		text += ", void"
	}
	return Cell{Text: text, Trial: -1, Class: r.Class, plain: text}
}

// WriteCSV writes the whole table as CSV (RFC 4180). A cell that a spreadsheet would take for a formula gets a quote
// before it.
func (t Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(t.Head); err != nil {
		return fmt.Errorf("write %q as CSV: %w", t.Caption, err)
	}
	line := make([]string, 0, len(t.Head))
	for _, row := range t.Rows {
		line = line[:0]
		for _, c := range row {
			text := c.Text
			if c.plain != "" {
				text = c.plain
			}
			line = append(line, bare(text))
		}
		if err := out.Write(line); err != nil {
			return fmt.Errorf("write %q as CSV: %w", t.Caption, err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write %q as CSV: %w", t.Caption, err)
	}
	return nil
}

// bare is a cell as a spreadsheet and a script read it: figures without separators, no formulas.
func bare(text string) string {
	if text == none {
		return ""
	}
	figure := strings.ReplaceAll(strings.Replace(text, "−", "-", 1), ",", "")
	if _, err := strconv.ParseFloat(figure, 64); err == nil {
		return figure
	}
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
