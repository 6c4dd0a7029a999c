package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzSuggest sends anything: each line that begins with { gets one line of JSON, and a configuration
// holds the knobs of the last init, within its host budget.
func FuzzSuggest(f *testing.F) {
	f.Add(smallInit + "\n" + `{"op":"suggest"}` + "\n" + `{"op":"observe","obs":{"config":{"mem_fraction_static":0.81},"status":"load_oom"}}` + "\n" + `{"op":"recommend"}` + "\n" + `{"op":"exit"}`)
	f.Add(`{"op":"init","space":[{"name":"hicache_size","type":"int","low":0,"high":300},{"name":"hicache_write_policy","type":"cat","choices":["a","b"]}],"facts":{"tp":8,"host_budget_gb":400}}` + "\n" + `{"op":"suggest"}`)
	f.Add(`{"op":"init","space":[{"name":"a","type":"float","low":1e-9,"high":1e9,"log":true},{"name":"b","type":"cat_ord","choices":["x",1,null,true]}],"facts":{"defaults":{"a":-1}},"seed":[1]}` + "\n" + `{"op":"suggest"}` + "\n" + `{"op":"observe","obs":{"config":{"a":3},"status":"ok","value":-1e9}}`)
	f.Add(`{"op":"init","space":[{"name":"kv_cache_dtype","type":"cat","choices":["bf16","fp8_e4m3"]},{"name":"mem_fraction_static","type":"float","low":-3,"high":7,"step":0.5}],"facts":{"gpu_gb":1e-9,"model_hint":{"weights_gb_rank":1e14}}}` + "\n" + `{"op":"suggest"}`)
	f.Add("{\"op\":\"suggest\"\n[]\n{}\r\n\xff\n{\"op\":\"init\",\"space\":[{\"name\":\"\\u0000<\",\"type\":\"cat\",\"choices\":[\"\\ud800\"]}]}\n{\"op\":\"suggest\"}")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4000 || strings.Count(text, "suggest") > 4 || strings.Count(text, `"name"`) > 12 {
			t.Skip("the search itself takes its time; this is about the protocol")
		}
		var out bytes.Buffer
		if err := serveSuggest(t.Context(), strings.NewReader(text), &out); err != nil {
			t.Fatal(err)
		}
		replies := bytes.SplitAfter(out.Bytes(), []byte("\n"))
		replies = replies[:len(replies)-1] // after the last newline
		var names map[string]bool
		budget, ranks, pool := -1.0, 1.0, ""
		next := 0
		for line := range strings.SplitSeq(text, "\n") {
			if !strings.HasPrefix(line, "{") {
				continue
			}
			if next == len(replies) {
				t.Fatalf("no reply to %q", line)
			}
			reply := replies[next]
			next++
			var got struct {
				Error  string
				Config map[string]any
			}
			if err := json.Unmarshal(reply, &got); err != nil || !utf8.Valid(reply) {
				t.Fatalf("%q is answered by %q (%v)", line, reply, err)
			}
			var r suggestRequest
			if json.Unmarshal([]byte(line), &r) == nil && r.Op != nil && got.Error == "" {
				switch *r.Op {
				case "init":
					names, budget, ranks, pool = map[string]bool{}, -1, max(r.Facts.TP, 1), ""
					for _, k := range r.Space {
						names[k.Name] = true
						if flagOf(k.Name) == "hicache-size" {
							pool = k.Name
						}
					}
					if r.Facts.HostBudgetGB != nil {
						budget = max(*r.Facts.HostBudgetGB, 0)
					}
				case "exit":
					return
				}
			}
			if got.Config == nil {
				continue
			}
			if len(got.Config) != len(names) {
				t.Fatalf("%s for %v", reply, names)
			}
			if gb, isNumber := got.Config[pool].(float64); isNumber && budget >= 0 && gb*ranks > budget {
				t.Fatalf("%s within %v", reply, budget)
			}
		}
		if next != len(replies) {
			t.Fatalf("%d replies to %d requests", len(replies), next)
		}
	})
}
