package tuner

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// ParseSize reads a size with its unit ("400GB", "1.5 TiB"; GB is 1e9) and returns bytes. A number
// without a unit is an error: nobody can tell 400 GB from 400 bytes afterwards.
func ParseSize(text string) (float64, error) {
	t := strings.TrimSpace(text)
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(t, u.name)
		if !ok {
			continue
		}
		v, err := plainNumber(number)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%s is not a size; write a number and a unit, like 400GB", quote(text))
		case v < 0:
			return 0, fmt.Errorf("%s is negative; write a size of 0 or more, like 400GB", quote(text))
		}
		return v * u.bytes, nil
	}
	if _, err := plainNumber(t); err == nil {
		return 0, fmt.Errorf("%s has no unit; write %sGB or another of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB", quote(text), clip(t))
	}
	return 0, fmt.Errorf("%s is not a size; write a number and a unit, like 400GB", quote(text))
}

// FormatSize spells bytes in decimal GB with one decimal, as messages do: "440.0 GB".
func FormatSize(bytes float64) string { return fmt.Sprintf("%.1f GB", bytes/1e9) }

// ParseDuration reads a duration with units ("9h", "1h30m", "90s", "1d"). A number without a unit
// is an error; 0 needs none.
func ParseDuration(text string) (time.Duration, error) {
	t := strings.ReplaceAll(strings.TrimSpace(text), " ", "")
	if t == "0" {
		return 0, nil
	}
	if _, err := plainNumber(t); err == nil {
		return 0, fmt.Errorf("%s has no unit; write %ss, %sm or %sh", quote(text), clip(t), clip(t), clip(t))
	}
	days := 0.0
	rest := t
	if head, tail, ok := strings.Cut(t, "d"); ok {
		v, err := plainNumber(head)
		if err != nil {
			return 0, fmt.Errorf("%s is not a duration; write one like 90s, 25m or 9h", quote(text))
		}
		days, rest = v, tail
	}
	var d time.Duration
	if rest != "" {
		var err error
		if d, err = time.ParseDuration(rest); err != nil {
			return 0, fmt.Errorf("%s is not a duration; write one like 90s, 25m or 9h", quote(text))
		}
	}
	total := days*24*float64(time.Hour) + float64(d)
	switch {
	case total < 0:
		return 0, fmt.Errorf("%s is negative; write a duration of 0 or more, like 90s", quote(text))
	case total > float64(10*365*24*time.Hour):
		return 0, fmt.Errorf("%s is longer than ten years; write one like 90s, 25m or 9h", quote(text))
	}
	return time.Duration(total), nil
}

// FormatDuration spells a duration as people do: "8 min 51 s", "1 h 5 min", "90 ms".
func FormatDuration(d time.Duration) string {
	if d < 0 {
		return "-" + FormatDuration(-d)
	}
	switch {
	case d == 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', -1, 64) + " s"
	}
	d = d.Round(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h > 0 && m > 0:
		return fmt.Sprintf("%d h %d min", h, m)
	case h > 0:
		return fmt.Sprintf("%d h", h)
	case s > 0:
		return fmt.Sprintf("%d min %d s", m, s)
	default:
		return fmt.Sprintf("%d min", m)
	}
}

// ParseFraction reads a share between 0 and 1, as a number (0.03) or a percentage (3%).
func ParseFraction(text string) (float64, error) {
	t := strings.TrimSpace(text)
	number, percent := strings.CutSuffix(t, "%")
	v, err := plainNumber(number)
	if err != nil {
		return 0, fmt.Errorf("%s is not a fraction; write one like 0.03 or 3%%", quote(text))
	}
	if percent {
		v /= 100
	}
	if v < 0 || v > 1 {
		return 0, fmt.Errorf("%s is not between 0 and 1; write a fraction like 0.03 or 3%%", quote(text))
	}
	return v, nil
}

// ParseClock reads a time of day ("07:00", 24 hours) and returns it with two digits each.
func ParseClock(text string) (string, error) {
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.Format("15:04"), nil
		}
	}
	return "", fmt.Errorf("%s is not a time of day; write hours and minutes of the host's clock, like \"07:00\"", quote(text))
}

// plainNumber reads an ordinary finite decimal number: no hex, no inf, no underscores.
func plainNumber(text string) (float64, error) {
	t := strings.TrimSpace(text)
	if t == "" || strings.ContainsAny(t, "xXpPiInN_") {
		return 0, errNotNumber
	}
	v, err := strconv.ParseFloat(t, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, errNotNumber
	}
	return v, nil
}

var errNotNumber = errors.New("not a number")
