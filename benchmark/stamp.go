package benchmark

import (
	"math"
	"strconv"
	"time"
)

// stamp is a time as the file writes it, in the file's own unit, exact to 9 decimals.
type stamp struct {
	whole int64
	nano  int32 // billionths, 0 <= nano < 1e9
}

const (
	nanos    = 1_000_000_000
	maxStamp = 1e15 // in any unit: further away is no time
)

func (s stamp) before(other stamp) bool {
	return s.whole < other.whole || s.whole == other.whole && s.nano < other.nano
}

// minus is s - other in the file's unit.
func (s stamp) minus(other stamp) float64 {
	return float64(s.whole-other.whole) + float64(s.nano-other.nano)/nanos
}

// since is s - other as a duration, where a unit of the file is so many nanoseconds. What does not fit
// into a duration (292 years) is the longest there is.
func (s stamp) since(other stamp, unit time.Duration) time.Duration {
	whole := s.whole - other.whole
	if whole >= math.MaxInt64/int64(unit) {
		return math.MaxInt64
	}
	return time.Duration(whole)*unit + time.Duration(int64(s.nano-other.nano)*int64(unit)/nanos)
}

// parseStamp reads a JSON or CSV number. ok is false for what is none, is negative beyond reason or
// not finite.
func parseStamp(text []byte) (s stamp, ok bool) {
	i, negative := 0, false
	if len(text) > 0 && text[0] == '-' {
		i, negative = 1, true
	}
	start := i
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9' && i-start < 16; i++ {
		s.whole = s.whole*10 + int64(text[i]-'0')
	}
	if i == start {
		return stamp{}, false
	}
	if i < len(text) && text[i] == '.' {
		i++
		scale := int32(nanos / 10)
		for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
			s.nano += int32(text[i]-'0') * scale
			scale /= 10
		}
	}
	if i < len(text) { // an exponent, or no number
		return floatStamp(text)
	}
	if s.whole > maxStamp {
		return stamp{}, false
	}
	if negative {
		s = s.negated()
	}
	return s, true
}

func (s stamp) negated() stamp {
	if s.nano == 0 {
		return stamp{whole: -s.whole}
	}
	return stamp{whole: -s.whole - 1, nano: nanos - s.nano}
}

func floatStamp(text []byte) (stamp, bool) {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(math.Abs(f) <= maxStamp) {
		return stamp{}, false
	}
	whole := math.Floor(f)
	return stamp{whole: int64(whole), nano: int32(min((f-whole)*nanos, nanos-1))}, true
}

// parseDate reads "2024-05-10 00:00:00.0099301" with any number of decimals, a T for the space, and an
// optional zone (Z or +00:00) that is left aside: only differences matter, and a file has one zone.
func parseDate(text []byte) (stamp, bool) {
	if len(text) < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':' {
		return stamp{}, false
	}
	var field [6]int
	for i, at := range [6][2]int{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}} {
		for _, c := range text[at[0]:at[1]] {
			if c < '0' || c > '9' {
				return stamp{}, false
			}
			field[i] = field[i]*10 + int(c-'0')
		}
	}
	if field[1] < 1 || field[1] > 12 || field[2] < 1 || field[2] > 31 || field[3] > 23 || field[4] > 59 || field[5] > 60 {
		return stamp{}, false
	}
	s := stamp{whole: time.Date(field[0], time.Month(field[1]), field[2], field[3], field[4], field[5], 0, time.UTC).Unix()}
	rest := text[19:]
	if len(rest) > 0 && rest[0] == '.' {
		scale := int32(nanos / 10)
		for rest = rest[1:]; len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9'; rest = rest[1:] {
			s.nano += int32(rest[0]-'0') * scale
			scale /= 10
		}
	}
	zone := string(rest)
	return s, zone == "" || zone == "Z" || len(zone) == 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':'
}
