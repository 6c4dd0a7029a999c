package sglang

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// volatileInfo are the keys of /server_info that differ between two launches of one configuration:
// where and when it runs, its seed, what it measured and what it did since.
var volatileInfo = map[string]bool{
	"host": true, "port": true, "nccl_port": true, "dist_init_addr": true, "random_seed": true,
	"startup_time": true, "launch_command": true, "status": true, "internal_states": true,
	// Measured from free memory at launch, not configured: where free memory moves (a CPU server),
	// equal configurations get different pools.
	"max_total_num_tokens": true, "max_req_input_len": true,
}

// ServerInfoEqual compares two /server_info answers and returns the keys, sorted, in which the two
// servers are configured differently; none means equal. keys are flag names ("mem-fraction-static")
// or SGLang's own field names to compare; nil compares everything. Port, seed, start time, what a
// server measured, and instrument flags never count.
func ServerInfoEqual(a, b map[string]any, keys []string) []string {
	ignored := maps.Clone(volatileInfo)
	for _, name := range InstrumentNames() {
		ignored[fieldName(name)] = true
	}
	compare := map[string]bool{}
	if keys == nil {
		for key := range a {
			compare[key] = true
		}
		for key := range b {
			compare[key] = true
		}
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, EnvPrefix) {
			compare[fieldName(key)] = true
		}
	}
	var differ []string
	for key := range compare {
		if !ignored[key] && !sameJSON(a[key], b[key]) {
			differ = append(differ, key)
		}
	}
	slices.Sort(differ)
	return differ
}

// fieldName is the field of server_info that a flag sets: hyphens become underscores.
func fieldName(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// sameJSON compares two decoded JSON values; absent and null are the same, and so are numbers that
// print alike.
func sameJSON(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
