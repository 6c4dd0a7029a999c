package store

import (
	"database/sql"
	"encoding/json"
	"time"
)

// encoder turns Go values into column values and keeps the first error, so that a row reads as a
// list.
type encoder struct{ err error }

// json is v as JSON text; nil and empty stay apart (null, []).
func (e *encoder) json(v any) string {
	b, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	return string(b)
}

// time is a time as Unix nanoseconds, NULL for the zero time.
func (e *encoder) time(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}

// decoder is the way back: targets for Scan now, values once finish is called.
type decoder struct{ later []func() error }

// json fills v from a JSON column.
func (d *decoder) json(v any) any {
	text := new([]byte)
	d.later = append(d.later, func() error { return json.Unmarshal(*text, v) })
	return text
}

// maybe is json for a column that may be NULL, which leaves v as it is.
func (d *decoder) maybe(v any) any {
	text := new([]byte)
	d.later = append(d.later, func() error {
		if *text == nil {
			return nil
		}
		return json.Unmarshal(*text, v)
	})
	return text
}

// time fills t, in UTC, from a column written by encoder.time.
func (d *decoder) time(t *time.Time) any {
	nanos := new(sql.NullInt64)
	d.later = append(d.later, func() error {
		*t = time.Time{}
		if nanos.Valid {
			*t = time.Unix(0, nanos.Int64).UTC()
		}
		return nil
	})
	return nanos
}

// finish runs what had to wait for the scan.
func (d *decoder) finish() error {
	for _, f := range d.later {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
