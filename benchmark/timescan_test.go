package benchmark_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sgtune/benchmark"
)

// traceOf is a minimal trace with the given times.
func traceOf(extra string, times ...string) string {
	var text strings.Builder
	for _, at := range times {
		fmt.Fprintf(&text, `{"timestamp":%s,"input_length":10,"output_length":1%s}`+"\n", at, extra)
	}
	return text.String()
}

func TestTimeUnit(t *testing.T) {
	t.Parallel()
	const ids = `,"hash_ids":[1]`
	for _, c := range []struct {
		name, text, said string
		unit             string
		last             time.Duration
		note             string
	}{
		{"fractions", traceOf("", "0.5", "1", "2.25"), "", "s", 1750 * time.Millisecond, "taken as seconds"},
		{"small whole steps", traceOf("", "0", "1", "3"), "", "s", 3 * time.Second, "taken as seconds"},
		{"big whole steps", traceOf("", "0", "900", "3000"), "", "ms", 3 * time.Second, "taken as milliseconds"},
		{"said", traceOf("", "0", "900", "3000"), "s", "s", 3000 * time.Second, ""},
		{"one row", traceOf("", "1700000000123"), "", "s", 0, "taken as seconds"},
		{"Mooncake", traceOf(ids, "0", "1", "3"), "", "ms", 3 * time.Millisecond, ""},
		{"Mooncake in seconds", traceOf(ids, "0", "0.25", "1.5"), "", "s", 1500 * time.Millisecond, "as milliseconds, which this format usually has, they would be 1333 requests/s"},
		{"exact", traceOf(ids, "1700000000123.000001", "1700000000123.000003"), "ms", "ms", 2 * time.Nanosecond, ""},
		{"exponents", traceOf(ids, "1e3", "2.5E3"), "ms", "ms", 1500 * time.Millisecond, ""},
		{"negative", traceOf(ids, "-1.5", "0"), "s", "s", 1500 * time.Millisecond, ""},
		{"centuries", traceOf(ids, "0", "1e15"), "s", "s", 1<<63 - 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, err := benchmark.ReadWorkloadAs(write(t, c.text), benchmark.ReadOptions{TimeUnit: c.said})
			if err != nil {
				t.Fatal(err)
			}
			if at := w.Row(w.Len() - 1).At; !w.Timed || w.TimeUnit != c.unit || at != c.last {
				t.Errorf("unit %q, last at %v; want %q, %v", w.TimeUnit, at, c.unit, c.last)
			}
			if c.note != "" && !strings.Contains(strings.Join(w.Notes, "\n"), c.note) {
				t.Errorf("notes %q, want %q", w.Notes, c.note)
			}
		})
	}
	if _, err := benchmark.ReadWorkloadAs(write(t, traceOf("", "0")), benchmark.ReadOptions{TimeUnit: "h"}); err == nil || !strings.Contains(err.Error(), "choose s or ms") {
		t.Errorf("unit h: %v", err)
	}
}

func TestCheckArrivals(t *testing.T) {
	t.Parallel()
	const ids = `,"hash_ids":[1]`
	volley := strings.Split(strings.Repeat("7 ", 101), " ")[:101]
	for _, c := range []struct{ name, text, unit, want string }{
		{"in order", traceOf(ids, "0", "900", "3000"), "", ""},
		{"a small volley", traceOf(ids, "7", "7", "7"), "", ""},
		{"a big volley", traceOf(ids, volley...), "", "all 101 requests at the same moment when read as milliseconds; say --time-unit s"},
		{"seconds read as milliseconds", traceOf(ids, "0", "0.5"), "ms", "2 requests within 0.0005 s, 2000 requests/s when read as milliseconds; say --time-unit s if"},
		{"milliseconds read as seconds", traceOf(ids, "0", "1e8"), "s", "2 requests over 1157 days when read as seconds; say --time-unit ms if"},
		{"no times", `{"input_length":10,"output_length":1}`, "", "has no arrival times to replay; choose --concurrency or --rate"},
		{"some times", traceOf(ids, "0", "null"), "", "has no arrival times to replay"},
	} {
		w, err := benchmark.ReadWorkloadAs(write(t, c.text), benchmark.ReadOptions{TimeUnit: c.unit})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err = w.CheckArrivals()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
		if c.name == "seconds read as milliseconds" && (w.CheckArrivalsAt(0.1) != nil || w.CheckArrivalsAt(2) == nil) {
			t.Errorf("at other speeds: %v, %v", w.CheckArrivalsAt(0.1), w.CheckArrivalsAt(2))
		}
		if shown := strings.Contains(strings.Join(w.Notes, "\n"), "arrival times can't be right"); shown != (c.want != "" && w.Timed) {
			t.Errorf("%s: notes %q", c.name, w.Notes)
		}
	}
}

// TestContainers reads the same rows in other wrappings.
func TestContainers(t *testing.T) {
	t.Parallel()
	const chat = `{"id":1,"conversations":[{"from":"human","value":"Name a colour."},{"from":"gpt","value":"Blue."}]}`
	const prompt = `{"prompt":"a","output_tokens":3}`
	for _, c := range []struct {
		name, text, format string
		rows               int
		dropped            int
	}{
		{"ShareGPT, a row a line", chat + "\n" + chat + "\n", "sharegpt", 2, 0},
		{"ShareGPT, the other key", strings.Replace("["+chat+"]", "conversations", "conversation", 1), "sharegpt", 1, 0},
		{"byte order mark before an array", "\xef\xbb\xbf[" + chat + "]", "sharegpt", 1, 0},
		{"array of prompts", "[" + prompt + ",\r\n" + prompt + "]\r\n", "prompts", 2, 0},
		{"array cut short", "[" + prompt + "," + prompt[:10], "prompts", 1, 1},
		{"array with a bad row", "[" + prompt + ",{oops}," + prompt + "]", "prompts", 2, 1},
		{"bad lines first", "\n# made by hand\n" + prompt + "\n", "prompts", 1, 1},
		{"a brace that never closes", "{\n" + prompt + "\n", "prompts", 1, 1},
		{"SpecForge array", `[{"conversations":[{"role":"user","content":"a"}]}]`, "specforge", 1, 0},
		{"agentic array", `[[{"messages":[{"role":"user","content":"a"}]}]]`, "agentic", 1, 0},
		{"agentic on one line", `{"conversations":[[{"messages":[{"role":"user","content":"a"}]}],[]]}`, "agentic", 1, 1},
		{"instruction", `{"instruction":"Sum up."}`, "prompts", 1, 0},
		{"guidellm columns", "timestamp,input_length,output_length\n0.5,10,20\n1,11,21\n", "trace", 2, 0},
		{"columns in another order", "completion_tokens,timestamp,prompt_tokens\n10,0.5,20\n11,1,21\n", "trace", 2, 0},
		{"guidellm's counts", "prompt_tokens_count,output_tokens_count\n10,20\n", "trace", 1, 0},
		{"SGLang custom without roles", `{"conversation":[{"content":"a"},{"value":"b"}]}` + "\n" + `{"conversation":[{"value":"a"},{}]}`, "sglang-custom", 1, 1},
		{"quoted CSV", `"Timestamp","Model","Request tokens","Response tokens"` + "\n" + `1,"a, b",10,20` + "\n", "burstgpt", 1, 0},
		{"Azure 2024", "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,10,20\n2024-05-10T00:00:01Z,10,20\n2024-05-10,1,1\n", "azure", 2, 1},
		{"other names", `{"prompt_tokens":10,"completion_tokens":20}`, "trace", 1, 0},
		{"escapes and nested values", `{"timestamp":1,"note":"a\"b","more":{"x":[1]},"input_length":10,"output_length":2,"hash_ids":[3]}`, "mooncake", 1, 0},
		{"OpenAI batch without url", `{"custom_id":"1","body":{"prompt":"a"}}`, "openai-batch", 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := read(t, write(t, c.text)).Summary()
			if s.Format != c.format || s.Kept != c.rows || s.Rows != c.rows+c.dropped {
				t.Errorf("%s: %d rows, %d kept, dropped %v; want %s, %d kept, %d dropped", s.Format, s.Rows, s.Kept, s.Dropped, c.format, c.rows, c.dropped)
			}
		})
	}
}

// TestBailianChains: a session is called after the first row of its chain, however long.
func TestBailianChains(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i, parent := range []int{-1, 0, -1, 1, 2, 3} {
		fmt.Fprintf(&text, `{"chat_id":%d,"parent_chat_id":%d,"timestamp":%d.5,"input_length":16,"output_length":1,"hash_ids":[%d]}`+"\n", i, parent, i, i)
	}
	w := read(t, write(t, text.String()))
	var got []string
	for _, r := range w.All() {
		got = append(got, r.Session)
	}
	if s := strings.Join(got, " "); s != "0 0 2 0 2 0" || w.BlockTokens != 16 {
		t.Errorf("sessions %s, block %d", s, w.BlockTokens)
	}
}

// TestSummaryOfAnything: a workload that comes from no file, parts and an empty one have summaries too.
func TestSummaryOfAnything(t *testing.T) {
	t.Parallel()
	rows := []benchmark.Row{
		{Number: 0, InputTokens: 8, OutputTokens: 2, Session: "x y", HashIDs: []int64{1, 2}},
		{Number: 1, InputTokens: 8, OutputTokens: 4, At: time.Second, HashIDs: []int64{1, 3}},
		{Number: 2, Text: "Name a colour.", OutputTokens: 256, Open: true, At: 3 * time.Second},
	}
	w := benchmark.NewWorkload(rows, 4)
	s := w.Summary()
	if s.Requests != 3 || string(s.First[0].Session) != `"x y"` || *s.First[1].PrefixHitTokens != 4 || s.First[2].OutputTokens != nil || !s.First[2].Estimated ||
		s.OutputTokens.Unsaid != 1 || !s.InputTokens.Estimated || s.Arrivals.DurationS != 3 {
		t.Errorf("%+v", s)
	}
	if p := w.Part(1, 9).Summary(); p.Kept != 2 || *p.First[0].ArrivalS != 0 || *p.First[1].ArrivalS != 2 || *p.First[0].PrefixHitTokens != 0 {
		t.Errorf("%+v", p)
	}
	for _, empty := range []*benchmark.Workload{{}, w.Part(2, 2), benchmark.NewWorkload(nil, 0)} {
		if s := empty.Summary(); s.Kept != 0 || s.InputTokens != nil || s.First == nil || s.Dropped == nil || empty.MaxTokens() != 0 || empty.MeanInput() != 0 || empty.InputQuantile(0.5) != 0 {
			t.Errorf("%+v", s)
		}
	}
	if l := w.Longest(0.9); l.Len() != 2 || l.Row(1).Number != 1 {
		t.Errorf("%d longest rows", l.Len())
	}
}
