package sglang

import (
	"errors"
	"fmt"
	"math"
)

// ErrCellDiffers means that a log and a config.json do not belong together: the pool of the log has
// other bytes a token. The calibration that comes with it rests on the log alone.
var ErrCellDiffers = errors.New("the log's KV pool does not fit the model's config.json")

// CalibrateModel learns from one start-up log with the help of the model's config.json: the cell is
// exact, and the dtype and other settings may differ from the observed launch. observed is the layout
// of the log's launch, want that of the launch to predict; parallel sizes must be equal.
//
// A log that ends before the KV pool is enough too: then the figures of the weight lines decide,
// which are known to half a printed digit (LoadOnly).
func CalibrateModel(o Observation, m *ModelConfig, observed, want Layout) (Calibration, error) {
	seen, err := m.Cell(observed)
	if err != nil {
		return Calibration{}, err
	}
	next, err := m.Cell(want)
	if err != nil {
		return Calibration{}, err
	}
	if o.Tokens <= 0 || capped(o) {
		c, err := LoadOnly(o, next)
		c.Layout = want
		c.fillFree(o, seen.Bytes)
		return c, err
	}
	if o.BeforeLoadGiB <= 0 || o.Fraction <= 0 || o.Fraction >= 1 {
		return Calibration{}, errors.New("calibrate: the log lacks its first lines (need the server_args and Load weight begin lines)")
	}
	if err := sameCell(o, &seen, &next); err != nil {
		c, calErr := Calibrate(o)
		return c, errors.Join(err, calErr)
	}
	if pool := float64(o.Tokens) * seen.Bytes / GiB; math.Abs(gapGiB(o, pool)) < math.Abs(gapGiB(o, pool+seen.ReserveGiB)) {
		seen.ReserveGiB, next.ReserveGiB = 0, 0 // the log kept none
	}
	c := calibrationOf(o)
	c.CellBytes, c.DtypeBytes, c.Cell, c.Layout = exactly(next.Bytes), next.DtypeBytes, &next, want
	n, page := float64(o.Tokens), float64(c.PageSize)
	before := func(tokens float64) float64 { return tokens*seen.Bytes/GiB/seen.Share() + seen.FixedGiB() }
	c.RestGiB = Range{Low: before(n), Mid: before(n + page/2), High: before(n + page)}
	c.SpreadGiB = launchSpreadGiB
	if gap := math.Abs(gapGiB(o, c.RestGiB.Mid)); gap < silentGiB && seen.State.SlotBytes == 0 {
		c.SpreadGiB = max(c.SpreadGiB, gap)
	}
	if seen.State.SlotBytes > 0 { // whole slots: the budget of one may be left over
		c.RestGiB.Low -= seen.State.SlotBytes / GiB
		c.RestGiB.High += seen.State.SlotBytes / GiB
	}
	return c, nil
}

// LoadOnly calibrates by the weight lines alone: T and A to half a printed digit, and the cell. It is
// for logs that end before the pool, such as those of a fraction that was too low.
func LoadOnly(o Observation, cell Cell) (Calibration, error) {
	if o.BeforeLoadGiB <= 0 || o.AfterLoadGiB <= 0 || o.AfterLoadGiB > o.BeforeLoadGiB {
		return Calibration{}, errors.New("calibrate: the log does not reach the end of the weight load (no Load weight end line), so it says nothing about memory; give a log that does")
	}
	c := calibrationOf(o)
	c.Fraction = 1 // there the static budget is A
	c.RestGiB = around(o.AfterLoadGiB, halfPrint)
	c.CellBytes, c.DtypeBytes, c.Cell = exactly(cell.Bytes), cell.DtypeBytes, &cell
	return c, nil
}

// sameCell checks the model's cell against the printed pool. A printed pool may leave the index rows
// or the draft out; when the budget of the log was divided by that smaller cell, both cells are
// lowered to it. Models with two pools print each alone and are not checked.
func sameCell(o Observation, seen, next *Cell) error {
	if seen.Sliding > 0 || o.KVGiB <= 0 {
		return nil
	}
	printed, err := printedCell(o)
	if err != nil {
		return nil //nolint:nilerr // too small to tell: nothing speaks against the model
	}
	if printed.Contains(seen.Bytes) {
		return nil
	}
	for _, pool := range seen.Pool {
		if !printed.Contains(pool) {
			continue
		}
		if rest := o.AfterLoadGiB - o.BeforeLoadGiB*(1-o.Fraction); nearer(rest*GiB/float64(o.Tokens), pool, seen.Bytes) && seen.State.SlotBytes == 0 {
			next.Bytes *= pool / seen.Bytes
			seen.Bytes = pool
		}
		return nil
	}
	return fmt.Errorf("%w: %.0f bytes a token there, %.0f by the model", ErrCellDiffers, printed.Mid, seen.Bytes)
}

// nearer reports whether v is nearer to a than to b.
func nearer(v, a, b float64) bool { return math.Abs(v-a) < math.Abs(v-b) }

// modelHost is the host pool by the model's own cell and this version's rules.
func (c Calibration) modelHost(cfg Config, page int, p *Prediction) {
	l := c.Layout
	l.PageSize = page
	at := func(tokens float64) HostPool { return c.Cell.HostPool(cfg, l, int(max(0, tokens))) }
	low, mid, high := at(p.Tokens.Low), at(p.Tokens.Mid), at(p.Tokens.High)
	p.HostPoolTokens = Range{float64(low.Tokens), float64(mid.Tokens), float64(high.Tokens)}
	p.HostPoolGBPerRank, p.HostExtraGBPerRank = mid.Bytes/GB, mid.ExtraBytes/GB
	if gb := hicacheGB(cfg); gb > 0 {
		p.HostPoolGBPerRank = gb
	}
}
