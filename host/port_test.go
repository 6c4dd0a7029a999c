package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseListeners(t *testing.T) {
	t.Parallel()
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0 0 10 0
   2: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0 100 0 0 10 0
   3: 0100007F:D431 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 14 1 0 100 0 0 10 0
   4: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 15 1
   5: short:1F90
`
	for _, c := range []struct {
		name string
		port int
		want []string
	}{{"both families, no connections", 8080, []string{"11", "15"}}, {"any address", 8081, []string{"12"}}, {"none", 80, nil}} {
		if diff := cmp.Diff(c.want, parseListeners([]byte(table), c.port)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}
