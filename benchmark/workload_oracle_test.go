package benchmark_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/benchmark"
)

const workloads = "testdata/workloads/"

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// TestFormats reads the tiny files and compares with what whoever made them says is in them.
func TestFormats(t *testing.T) {
	t.Parallel()
	var oracle map[string]struct {
		Rows, Kept    int
		Conversations int
		KeptTwo       int `json:"kept_two_turn_rule"`
		Dropped       map[string]int
		Arrival       []float64         `json:"arrival_s"`
		Input         []int             `json:"input_tokens"`
		Output        []*int            `json:"output_tokens"`
		Block         int               `json:"block_tokens"`
		Hits          []int             `json:"prefix_hit_tokens_infinite_cache"`
		Sessions      []json.RawMessage `json:"sessions"`
		URLs          []string          `json:"urls"`
		UserTurns     []int             `json:"user_turns"`
		Turns         []int
	}
	readJSON(t, workloads+"formats/expected.json", &oracle)
	names := map[string]string{
		"azure.csv": "azure", "burstgpt_6col.csv": "burstgpt", "burstgpt_8col.csv": "burstgpt", "mooncake.jsonl": "mooncake", "bailian.jsonl": "bailian",
		"aiperf_mooncake_ext.jsonl": "aiperf", "trace_minimal.jsonl": "trace", "vidur_trace.csv": "vidur", "vidur_lengths.csv": "vidur", "sharegpt.json": "sharegpt",
		"sglang_custom.jsonl": "sglang-custom", "openai_messages.jsonl": "openai", "openai_batch.jsonl": "openai-batch", "vllm_custom.jsonl": "prompts",
		"specforge_conversations.jsonl": "specforge", "mtbench.jsonl": "mtbench", "agentic_trace.json": "agentic",
	}
	units := map[string]string{"azure": "", "burstgpt": "s", "mooncake": "ms", "bailian": "s", "aiperf": "ms", "trace": "s", "vidur": "s"}
	if len(oracle) != len(names) {
		t.Fatalf("%d files in the oracle, %d known here", len(oracle), len(names))
	}
	for file, format := range names {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w, want := read(t, workloads+"formats/"+file), oracle[file]
			s := w.Summary()
			kept := first(want.Kept, want.KeptTwo, want.Rows-want.Dropped["starts_with_assistant"], want.Conversations)
			if s.Format != format || s.Rows != first(want.Rows, want.Conversations) || s.Kept != kept || len(s.First) != kept {
				t.Errorf("%s: %d rows, %d kept, %d shown; want %s, %d, %d", s.Format, s.Rows, s.Kept, len(s.First), format, want.Rows, kept)
			}
			if file == "sharegpt.json" {
				want.Dropped = map[string]int{"fewer_than_2_messages": 1}
			}
			if diff := cmp.Diff(want.Dropped, s.Dropped); diff != "" && len(want.Dropped)+len(s.Dropped) > 0 {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			if want.Arrival != nil && s.TimeUnit != units[format] || want.Arrival == nil && file == "vidur_lengths.csv" && (w.Timed || s.Arrivals != nil) {
				t.Errorf("time unit %q, timed %v", s.TimeUnit, w.Timed)
			}
			if want.Block != 0 && s.BlockTokens != want.Block {
				t.Errorf("block %d, want %d", s.BlockTokens, want.Block)
			}
			for i, q := range s.First {
				compareAt(t, i, "arrival", want.Arrival, q.ArrivalS)
				compareAt(t, i, "input", want.Input, q.InputTokens)
				compareAt(t, i, "prefix hit", want.Hits, q.PrefixHitTokens)
				compareAt(t, i, "url", want.URLs, &q.URL)
				compareAt(t, i, "user turns", append(want.UserTurns, want.Turns...), &q.UserTurns)
				if want.Output != nil && !cmp.Equal(want.Output[i], q.OutputTokens) {
					t.Errorf("output %d: (-want +got)\n%s", i, cmp.Diff(want.Output[i], q.OutputTokens))
				}
				if want.Sessions != nil && string(want.Sessions[i]) != string(q.Session) && (string(want.Sessions[i]) != "null" || len(q.Session) > 0) {
					t.Errorf("session %d: %s, want %s", i, q.Session, want.Sessions[i])
				}
			}
		})
	}
}

func first(values ...int) int {
	for _, v := range values {
		if v != 0 {
			return v
		}
	}
	return 0
}

// compareAt compares the figure of row i where the oracle has one.
func compareAt[T comparable](t *testing.T, i int, what string, want []T, got *T) {
	t.Helper()
	if i < len(want) && (got == nil || *got != want[i]) {
		t.Errorf("%s of row %d: %v, want %v", what, i, got, want[i])
	}
}

// TestStats reads the real excerpts and compares with what another program counted.
func TestStats(t *testing.T) {
	t.Parallel()
	type lengths struct {
		Min, P50, P90, P99, Max int
		Mean                    float64
		Total                   int64
	}
	var stats map[string]struct {
		Requests, Rows, Conversations int
		ZeroOutput                    int      `json:"zero_output_rows"`
		Input                         *lengths `json:"input_tokens"`
		Output                        *lengths `json:"output_tokens"`
		Arrivals                      *struct {
			Duration float64 `json:"duration_s"`
			Rate     float64 `json:"mean_rate_rps"`
			CV       float64 `json:"interarrival_cv"`
		}
		Prefix *struct {
			Block  int     `json:"block_tokens"`
			Tokens float64 `json:"prefix_hit_token_ratio"`
			Blocks float64 `json:"prefix_hit_block_ratio"`
		}
		Turns map[string]int
	}
	text, err := os.ReadFile(workloads + "STATS.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "_definitions")
	if text, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &stats); err != nil {
		t.Fatal(err)
	}
	for folder, format := range map[string]string{
		"azure-llm-2023-code": "azure", "burstgpt-sample": "burstgpt", "gsm8k-prompts": "prompts", "mooncake-conversation": "mooncake",
		"mt-bench-prompts": "mtbench", "sharegpt-dummy": "sharegpt", "specforge-tooluse": "specforge",
	} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			want := stats[folder]
			files, err := filepath.Glob(workloads + folder + "/[^LR]*.*")
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			s := read(t, files[0]).Summary()
			if rows := first(want.Requests, want.Rows, want.Conversations); s.Format != format || s.Rows != rows || s.Kept != rows-want.ZeroOutput {
				t.Errorf("%s: %d rows, %d kept; want %s, %d", s.Format, s.Rows, s.Kept, format, rows)
			}
			if folder == "burstgpt-sample" { // the oracle counts its failed requests too
				return
			}
			if want.Input != nil {
				got := []*benchmark.TokenLengths{s.InputTokens, s.OutputTokens}
				for i, w := range []*lengths{want.Input, want.Output} {
					g := lengths{got[i].Min, got[i].P50, got[i].P90, got[i].P99, got[i].Max, math.Round(got[i].Mean*1000) / 1000, got[i].Total}
					if g != *w {
						t.Errorf("lengths %+v, want %+v", g, *w)
					}
				}
			}
			if a := want.Arrivals; a != nil {
				near(t, "duration", s.Arrivals.DurationS, a.Duration, 1e-6)
				near(t, "rate", *s.Arrivals.MeanRate, a.Rate, 2e-5)
				near(t, "variation", *s.Arrivals.CV, a.CV, 1e-3)
			}
			if p := want.Prefix; p != nil {
				near(t, "token ratio", s.Prefix.TokenRatio, p.Tokens, 2e-4)
				near(t, "block ratio", s.Prefix.BlockRatio, p.Blocks, 2e-4)
				if s.Prefix.BlockTokens != p.Block {
					t.Errorf("block %d", s.Prefix.BlockTokens)
				}
			}
			messages := 0 // an answer for each
			for turns, n := range want.Turns {
				messages += int(turns[0]-'0') * n
			}
			if folder == "sharegpt-dummy" && s.Requests != messages/2 || folder == "mt-bench-prompts" && s.Requests != messages {
				t.Errorf("%d requests of %d messages", s.Requests, messages)
			}
		})
	}
}

// TestMultiTurn looks at what is sent of recorded conversations.
func TestMultiTurn(t *testing.T) {
	t.Parallel()
	tool := read(t, workloads+"specforge-tooluse/tool_use_conversation.jsonl").Row(0)
	if len(tool.Turns) != 6 || len(tool.Turns[0].Messages) != 2 || len(tool.Turns[5].Messages) != 1 || !strings.HasPrefix(string(tool.Extra), `{"tools":[{"function"`) {
		t.Errorf("%d turns, extra %.40s", len(tool.Turns), tool.Extra)
	}
	chat := read(t, workloads+"formats/sharegpt.json").Row(1)
	var texts []string
	for _, turn := range chat.Turns {
		for _, m := range turn.Messages {
			texts = append(texts, string(m))
		}
		texts = append(texts, "?")
	}
	want := []string{`{"role":"system","content":"Be brief."}`, `{"role":"user","content":"Name a fruit."}`, "?", `{"role":"user","content":"Another?"}`, "?"}
	if diff := cmp.Diff(want, texts); diff != "" || chat.OutputTokens != 2+2 || chat.Open {
		t.Errorf("%d tokens wanted (-want +got):\n%s", chat.OutputTokens, diff)
	}
	custom := read(t, workloads+"formats/sglang_custom.jsonl").Row(1)
	if custom.Text != "Name a fruit." || custom.OutputTokens != 2 || custom.Turns != nil {
		t.Errorf("%+v", custom)
	}
	openai := read(t, workloads+"formats/openai_messages.jsonl")
	if a, b := openai.Row(0), openai.Row(1); string(a.Extra) != `{"temperature":0.0}` || len(b.Turns) != 1 || len(b.Turns[0].Messages) != 2 ||
		!strings.HasPrefix(string(b.Extra), `{"tools":`) || b.Turns[0].OutputTokens != 32 {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// TestSessions looks at the turns of a session that wait for each other.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := read(t, workloads+"formats/aiperf_mooncake_ext.jsonl")
	if j, ok := w.Follow(0); !ok || j != 1 || !w.Row(1).Follows || w.Row(1).Pause.Seconds() != 2 || w.Row(0).Session != `"s1"` {
		t.Errorf("row 0 is followed by %d (%v): %+v", j, ok, w.Row(1))
	}
	for _, i := range []int{1, 2, 3, 4} {
		if j, ok := w.Follow(i); ok {
			t.Errorf("row %d is followed by %d", i, j)
		}
	}
	if p := w.Part(1, 5); p.Row(0).Follows || p.Len() != 4 || p.Row(3).At.Seconds() != 0.5 {
		t.Errorf("part: %+v", p.Row(0))
	}
	if s := w.Summary(); s.Arrivals.Requests != 4 || s.First[1].ArrivalS != nil || *s.First[1].AfterS != 2 || s.First[2].OutputTokens == nil {
		t.Errorf("%+v", s)
	}
	payload := w.Row(4)
	if payload.Text != "Say hello." || payload.OutputTokens != 4 || payload.At.Seconds() != 1 {
		t.Errorf("%+v", payload)
	}
}
