package benchmark

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync"
)

// rowIndex notes where rows can be read again: one place for each run of rows.
type rowIndex struct {
	places []rowPlace
	bytes  int64 // of the latest run
	end    int64
}

type rowPlace struct {
	offset int64
	first  int // kept row that stands there
	number int // its number in the file
}

// A run ends with 64 rows, but not before 16 KB (the index of 10 GB stays below 20 MB), and with 1 MB.
const (
	runRows  = 64
	runBytes = 16 << 10
	runMost  = 1 << 20
)

func (x *rowIndex) add(row rowText, kept, number int) {
	n := len(x.places)
	if n == 0 || x.bytes >= runMost || x.bytes >= runBytes && kept-x.places[n-1].first >= runRows {
		x.places = append(x.places, rowPlace{offset: row.offset, first: kept, number: number})
		x.bytes = 0
	}
	x.end = row.end
	x.bytes = row.end - x.places[len(x.places)-1].offset
}

// diskRows are rows that stay in their file. The runs used last are kept.
type diskRows struct {
	file   *fileBytes
	layout *layout
	index  rowIndex
	n      int
	order  []int32 // position in sending order to row in file order, nil when they are the same
	decor  decor
	waits  func(i int) bool // whether the row in file order i waits for another

	mu   sync.Mutex
	runs []*rowRun // used last first
}

// rowRun is a run in memory.
type rowRun struct {
	place int
	bytes int64
	rows  []Row
	err   error
}

// What the cache of runs may hold; a run longer than that is held alone.
const (
	cachedRuns  = 8
	cachedBytes = 16 << 20
)

func (d *diskRows) len() int { return d.n }

func (d *diskRows) row(i int) Row {
	if d.order != nil {
		i = int(d.order[i])
	}
	place := sort.Search(len(d.index.places), func(k int) bool { return d.index.places[k].first > i }) - 1
	d.mu.Lock()
	defer d.mu.Unlock()
	run := d.run(place)
	at := i - d.index.places[place].first
	if at >= len(run.rows) {
		return Row{Number: d.index.places[place].number, Err: run.err}
	}
	return run.rows[at]
}

// run returns a run, from memory or from the file.
func (d *diskRows) run(place int) *rowRun {
	i := slices.IndexFunc(d.runs, func(r *rowRun) bool { return r.place == place })
	if i >= 0 {
		run := d.runs[i]
		copy(d.runs[1:i+1], d.runs[:i])
		d.runs[0] = run
		return run
	}
	run := d.read(place)
	d.runs = slices.Insert(d.runs, 0, run)
	held := int64(0)
	for i, r := range d.runs {
		if held += r.bytes; i > 0 && (held > cachedBytes || i >= cachedRuns) {
			clear(d.runs[i:])
			d.runs = d.runs[:i]
			break
		}
	}
	return run
}

// read reads a run. What was found the first time must be there again.
func (d *diskRows) read(place int) *rowRun {
	here := d.index.places[place]
	end, want := d.index.end, d.n-here.first
	if place+1 < len(d.index.places) {
		next := d.index.places[place+1]
		end, want = next.offset, next.first-here.first
	}
	run := &rowRun{place: place, bytes: end - here.offset}
	changed := fmt.Errorf("%s: changed while it was replayed: row %d is not where it was", d.file.path, here.number)
	if d.file.changed() {
		run.err = changed
		return run
	}
	texts, number := d.layout.again(d.file, here.offset, end), here.number
	for len(run.rows) < want {
		text, err := texts.next()
		if err != nil {
			if run.err = changed; !errors.Is(err, io.EOF) {
				run.err = d.file.readError(here.number+1, err)
			}
			return run
		}
		var e entry
		if d.layout.parse(text.text, &e) == "" {
			e.row.Number = number
			e.row.Follows = e.row.Follows && d.waits(here.first+len(run.rows))
			run.rows = append(run.rows, d.decor.row(&e))
		}
		number++
	}
	return run
}
