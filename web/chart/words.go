package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"sgtune/trial"
)

// none stands where there is no figure.
const none = "–"

// Number spells a figure with four significant digits and thousands separators: 2,104; 0.8512.
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	if v = rounded(v); v == 0 { // as it is sent to be drawn
		v = 0 // never −0
	}
	text := strconv.FormatFloat(v, 'f', digits(v), 64)
	whole, fraction, found := strings.Cut(text, ".")
	fraction = strings.TrimRight(fraction, "0")
	sign := ""
	if rest, negative := strings.CutPrefix(whole, "-"); negative {
		sign, whole = "−", rest
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found && fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}

// digits is how many decimals leave four significant digits.
func digits(v float64) int {
	if v == 0 {
		return 4
	}
	return min(max(0, 3-int(math.Floor(math.Log10(math.Abs(v))))), 12)
}

// rounded keeps four significant digits, enough to draw and to read.
func rounded(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	unit := math.Pow(10, float64(digits(v)))
	if math.Abs(v) >= 1e4 {
		unit = 1
	}
	return math.Round(v*unit) / unit
}

// seconds spells a time a person waits: "4.1 s", "350 ms".
func seconds(s float64) string {
	switch {
	case math.IsNaN(s):
		return none
	case s < 1:
		return strconv.FormatFloat(math.Round(s*1000), 'f', 0, 64) + " ms"
	case s < 100:
		return strconv.FormatFloat(math.Round(s*10)/10, 'f', -1, 64) + " s"
	}
	return Number(math.Round(s)) + " s"
}

// minutes spells a length of time: "8 min 51 s", "1 h 04 min".
func minutes(s float64) string {
	n := int(math.Round(s))
	switch {
	case n < 60:
		return fmt.Sprintf("%d s", n)
	case n < 3600:
		return fmt.Sprintf("%d min %02d s", n/60, n%60)
	}
	return fmt.Sprintf("%d h %02d min", n/3600, n%3600/60)
}

// clock is a time of day, none for the zero time.
func clock(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.Local().Format("15:04")
}

// count spells a number of things: "1 trial", "30 trials".
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(float64(n)) + " " + one + "s"
}

// tokens spells a number of KV tokens on a line of the map: "160k".
func tokens(n float64) string {
	if n >= 1e6 {
		return Number(n/1e6) + "M"
	}
	return Number(n/1e3) + "k"
}

// units are the words after a value of an objective.
var units = map[string]string{
	"": "output tok/s", "output_tok_s": "output tok/s", "requests_s": "requests/s", "goodput": "requests/s within the SLO",
	"concurrency": "clients within the SLO",
}

// Unit is what the objective of this study is counted in.
func (d *Data) Unit() string {
	if u, ok := units[d.Record.Objective]; ok {
		return u
	}
	return d.Record.Objective
}

// amount is a value with its unit.
func (d *Data) amount(v float64) string { return Number(v) + " " + d.Unit() }

// role is a row's role in a table, "" for a search trial.
func role(r trial.Role) string {
	if r == trial.RoleSearch {
		return ""
	}
	return string(r)
}
