package tuner_test

import (
	"strings"
	"testing"

	"sgtune/tuner"
)

// TestGuardsLineInTheCheck: the line stands in what was understood, and one that is above the free memory is a reason
// against the night.
func TestGuardsLineInTheCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, host, row string
		available       int64
		against         bool
	}{
		{"the guard's own choice", "{kind: local}", "less than 5% of the memory is free, 1 to 4 GiB (host.ram_floor), or when sgtune is not heard for 15 min", 2e9, false},
		{"given", "{kind: ssh, address: box, ram_floor: 6GB}", "less than 6.0 GB of the memory is free (host.ram_floor)", 400e9, false},
		{"too little is free", "{kind: local, ram_floor: 6GB}", "less than 6.0 GB", 5e9, true},
		{"not known", "{kind: local, ram_floor: 6GB}", "less than 6.0 GB", -1, false},
		{"simulated", "{kind: simulated, profile: kimi-8x96}", "", 400e9, false},
	} {
		s := mustParse(t, "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\nhost: "+c.host+"\n")
		r := tuner.Check(s, tuner.CheckInput{Facts: tuner.HostFacts{MemAvailable: c.available, CgroupHeadroom: -1}})
		row := ""
		for _, section := range r.Understood {
			for _, one := range section.Rows {
				if one.Name == "guard" {
					row = one.Text
				}
			}
		}
		if !strings.Contains(row, c.row) || (row == "") != (c.row == "") {
			t.Errorf("%s: row %q, want %q", c.name, row, c.row)
		}
		if got := strings.Contains(strings.Join(r.Against, "; "), "less than host.ram_floor, 6.0 GB"); got != c.against {
			t.Errorf("%s: against %q", c.name, r.Against)
		}
	}
}
