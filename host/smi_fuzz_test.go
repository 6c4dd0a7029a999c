package host

import (
	"strings"
	"testing"
)

// FuzzParseSMI feeds the three parsers what nvidia-smi may print: they never panic, an error brings no GPUs, and
// what they bring is within bounds.
func FuzzParseSMI(f *testing.F) {
	card := "0, GPU-a, 143771, 4, 00000000:17:00.0, 570.00.00, 75.12, 700.00, 1980, 3201, 35, 0, 0x0000000000000044, Disabled, NVIDIA H200\n"
	f.Add(card, "GPU-a, 4711, 1000, /usr/bin/python3\n", "GPU-a, No, No\n")
	f.Add(strings.Replace(card, "75.12", "[N/A]", 1)+strings.ReplaceAll(card, "GPU-a", "GPU-b"), "GPU-a, 1, [N/A], a, b\nGPU-b, 2, 1, [Not Found]\n", "GPU-b, Yes, [N/A]\n")
	f.Add("0, GPU-a, 1, 1"+strings.Repeat(", [Not Supported]", 10)+", x\n", "No running processes found\n", "")
	f.Add("0, GPU-a, ERR!, 1"+strings.Repeat(", ERR!", 11), "GPU-a, 99999999999, x, y\n", "GPU-a, Perhaps, No")
	f.Add(strings.Repeat("[GPU is lost], ", 14)+"x", "\x00", "WARNING: infoROM is corrupted at gpu 0000:17:00.0\n")
	f.Add("-1, GPU-a, 9223372036854775807, -4, , , NaN, 1e999, -0, 0x, , , 0xfffffffffffffffff, , ,", ",,,", ",,")
	f.Fuzz(func(t *testing.T, cards, apps, rows string) {
		gpus, err := parseSMIGPUs(cards, smiColumns)
		if (err == nil) != (len(gpus) > 0) {
			t.Fatalf("%d GPUs with %v", len(gpus), err)
		}
		if err := parseSMIApps(apps, gpus); err == nil {
			_ = parseSMIRows(rows, gpus)
		}
		for _, g := range gpus {
			if g.Index < 0 || g.UUID == "" || g.Total < 0 || g.Used < 0 {
				t.Errorf("%+v", g)
			}
			for _, v := range []Figure{g.PowerWatts, g.PowerLimitWatts, g.SMClockMHz, g.MemoryClockMHz, g.TemperatureC, g.UncorrectedECC} {
				if v.Value < 0 || !v.Known && v.Value != 0 {
					t.Errorf("%+v", g)
				}
			}
			for _, p := range g.Processes {
				if p.PID <= 0 || p.Used < -1 {
					t.Errorf("%+v", p)
				}
			}
		}
	})
}
