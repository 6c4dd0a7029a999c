package benchmark

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// finish fills in what only the whole file can tell.
func (s *scan) finish(w *Workload) error {
	unit := s.settleTimes(w)
	block, ok := s.blockTokens()
	w.BlockTokens = block
	if !ok {
		w.Notes = append(w.Notes, fmt.Sprintf("no block size fits all rows; %d tokens per hash id assumed, say otherwise with --block-tokens", block))
	}
	d := decor{first: s.times.low, unit: unit, chats: &s.chats}
	if s.facts == nil {
		s.keepRows(w, d)
	} else if err := s.findRows(w, d); err != nil {
		return err
	}
	if s.chats.full {
		w.Notes = append(w.Notes, fmt.Sprintf("sessions were followed over the first %d rows that have a row before them", maxChats))
	}
	w.Notes = append(w.Notes, w.facts.prefix.notes()...)
	if w.Timed {
		if err := w.CheckArrivals(); err != nil {
			w.Notes = append(w.Notes, err.Error())
		}
	}
	return nil
}

// settleTimes decides whether the workload has times and in which unit; 0 without.
func (s *scan) settleTimes(w *Workload) time.Duration {
	switch {
	case s.times.timed == 0:
		return 0
	case s.times.untimed > 0:
		w.Notes = append(w.Notes, fmt.Sprintf("%d of %d rows have no time of arrival: the others' are not used", s.times.untimed, s.kept))
		return 0
	}
	name, unit, note := s.times.unit(s.layout.format.unit, s.opts.TimeUnit)
	w.Timed, w.TimeUnit = true, name
	if note != "" {
		w.Notes = append(w.Notes, note)
	}
	return unit
}

// keepRows makes the workload of rows in memory.
func (s *scan) keepRows(w *Workload, d decor) {
	rows := make([]Row, len(s.entries))
	for i := range s.entries {
		rows[i] = d.row(&s.entries[i])
	}
	if w.Timed && !s.ordered {
		rows = sortRows(rows)
	}
	w.rows, w.links = memoryRows(rows), linkRows(rows)
	w.settle()
}

// sortRows brings rows into order of time; equal ones, and those that wait for another, stay behind the
// row before them.
func sortRows(rows []Row) []Row {
	keys := make([]time.Duration, len(rows))
	order := make([]int32, len(rows))
	latest := time.Duration(0)
	for i, r := range rows {
		if !r.Follows {
			latest = r.At
		}
		keys[i], order[i] = latest, int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(keys[a], keys[b]) })
	sorted := make([]Row, len(rows))
	for i, k := range order {
		sorted[i] = rows[k]
	}
	return sorted
}

// maxSorted bounds the memory of putting a big file's rows into order: 12 bytes each.
const maxSorted = 16 << 20

// findRows makes the workload of rows on disk.
func (s *scan) findRows(w *Workload, d decor) error {
	w.links = s.linker.done()
	store := &diskRows{file: s.file, layout: s.layout, index: s.index, n: s.kept, decor: d, waits: w.links.waits}
	w.rows, w.facts = store, s.facts
	gaps := &s.facts.gaps
	switch {
	case !w.Timed:
		*gaps = gapTally{}
	case s.ordered:
		*gaps = gaps.scaled(d.unit.Seconds())
	default:
		times, err := s.sortedTimes(d, store)
		if err != nil {
			return err
		}
		*gaps = gapTally{}
		for _, i := range store.order {
			gaps.add(times[i].Seconds())
		}
		if s.block.rows > 0 {
			w.Notes = append(w.Notes, "shared prefixes were counted in file order: the file is big and not in order of time")
		}
	}
	if w.BlockTokens != s.facts.prefix.block { // the rows that were counted first did not tell
		order := store.order
		store.order = nil
		w.facts = gather(w)
		w.facts.gaps, store.order = *gaps, order
	}
	w.Reuse = w.facts.prefix.tokenRatio()
	return nil
}

// sortedTimes reads the times of all rows again and sets the order of the store.
func (s *scan) sortedTimes(d decor, store *diskRows) ([]time.Duration, error) {
	if s.linker.done() != nil {
		return nil, fmt.Errorf("%s: sessions whose rows are not in order of time; sort the file by time first", s.file.path)
	}
	if s.kept > maxSorted {
		return nil, fmt.Errorf("%s: %d rows that are not in order of time are too many to sort here; sort the file by time first", s.file.path, s.kept)
	}
	rows, err := s.layout.rows(s.file)
	if err != nil {
		return nil, s.file.readError(1, err)
	}
	times := make([]time.Duration, 0, s.kept)
	for len(times) < s.kept {
		row, err := rows.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("%s: changed while it was read", s.file.path)
			}
			return nil, s.file.readError(row.line, err)
		}
		var e entry
		switch {
		case s.layout.parse(row.text, &e) != "":
		default:
			times = append(times, e.at.since(d.first, d.unit))
		}
	}
	store.order = make([]int32, s.kept)
	for i := range store.order {
		store.order[i] = int32(i)
	}
	slices.SortStableFunc(store.order, func(a, b int32) int { return cmp.Compare(times[a], times[b]) })
	return times, nil
}
