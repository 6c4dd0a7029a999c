package tuner_test

import (
	"strings"
	"testing"
	"time"

	"sgtune/tuner"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want float64
		err  string
	}{
		{"400GB", 400e9, ""},
		{"1.5 TiB", 1.5 * (1 << 40), ""},
		{" 512MiB ", 512 << 20, ""},
		{"10B", 10, ""},
		{"400", 0, "has no unit; write 400GB"},
		{"GB", 0, "is not a size"},
		{"", 0, "is not a size"},
		{"-5GB", 0, "is negative"},
		{"0x10GB", 0, "is not a size"},
		{"infGB", 0, "is not a size"},
		{"5 gallons", 0, "is not a size"},
	} {
		got, err := tuner.ParseSize(tt.text)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("ParseSize(%q) = %v, %v; want %v, %q", tt.text, got, err, tt.want, tt.err)
		}
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want time.Duration
		err  string
	}{
		{"9h", 9 * time.Hour, ""},
		{"1h30m", 90 * time.Minute, ""},
		{"90 s", 90 * time.Second, ""},
		{"1d", 24 * time.Hour, ""},
		{"1d12h", 36 * time.Hour, ""},
		{"200ms", 200 * time.Millisecond, ""},
		{"0", 0, ""},
		{"60", 0, "has no unit; write 60s"},
		{"-1h", 0, "is negative"},
		{"soon", 0, "is not a duration"},
		{"100000d", 0, "longer than ten years"},
		{"99999999999999999999h", 0, "is not a duration"},
		{"", 0, "is not a duration"},
	} {
		got, err := tuner.ParseDuration(tt.text)
		if tt.text == "" {
			continue // an empty word never gets here
		}
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v, %q", tt.text, got, err, tt.want, tt.err)
		}
	}
}

func TestFractionAndClock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"3%": 0.03, "0.03": 0.03, "100%": 1, "0": 0} {
		if got, err := tuner.ParseFraction(text); err != nil || got != want {
			t.Errorf("ParseFraction(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"3", "-1%", "101%", "x", "NaN"} {
		if _, err := tuner.ParseFraction(text); err == nil {
			t.Errorf("ParseFraction(%q) is accepted", text)
		}
	}
	for text, want := range map[string]string{"07:00": "07:00", "7:05": "07:05", "23:59": "23:59"} {
		if got, err := tuner.ParseClock(text); err != nil || got != want {
			t.Errorf("ParseClock(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"24:00", "7", "7am", ""} {
		if _, err := tuner.ParseClock(text); err == nil {
			t.Errorf("ParseClock(%q) is accepted", text)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 s", 90 * time.Millisecond: "90 ms", 1500 * time.Millisecond: "1.5 s", 531 * time.Second: "8 min 51 s",
		20 * time.Minute: "20 min", 65 * time.Minute: "1 h 5 min", 9 * time.Hour: "9 h", -time.Minute: "-1 min",
	} {
		if got := tuner.FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%v) = %q, want %q", d, got, want)
		}
	}
}
