package benchmark_test

import (
	"strings"
	"sync"
	"testing"

	"sgtune/benchmark"
)

// count is what a server counts: one token a word, and what it adds.
func count(t *testing.T, p benchmark.Prompt, adds int) benchmark.Request {
	t.Helper()
	text := p.Text
	if p.Messages != nil {
		text = strings.TrimPrefix(content(t, p.Messages[0]), ".") // the start of a chat message is part of what is added
	}
	return benchmark.Request{Prompt: len(strings.Fields(text)) + adds}
}

func TestCalibrationMakesLengthsExact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, endpoint string
		palette        benchmark.Palette
		adds           int
	}{
		{"chat template", benchmark.EndpointChat, wordedPalette(), 13},
		{"chat without a tokenizer", benchmark.EndpointChat, benchmark.WordPalette("test"), 31},
		{"first token of a text", benchmark.EndpointCompletions, benchmark.WordPalette("test"), 1},
		{"nothing", benchmark.EndpointCompletions, benchmark.WordPalette("test"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var calibration benchmark.Calibration
			feed := benchmark.NewFeedWith(lengths(5, 60, 4), benchmark.FeedOptions{Endpoint: c.endpoint, Palette: c.palette, Calibration: &calibration})
			learner := feed.(benchmark.Learner)
			for i := range 5 {
				p := feed.Next()
				r := count(t, p, c.adds)
				if exact := r.Prompt == 60; exact != (i >= 2 || c.adds == 0) || p.InputTokens != 60 {
					t.Errorf("request %d: %d tokens counted, %d wanted", i, r.Prompt, p.InputTokens)
				}
				learner.Learn(p, r)
			}
			if offset, ok := calibration.Learned(); !ok || offset != c.adds {
				t.Errorf("learned %d, %v; want %d", offset, ok, c.adds)
			}
			if calibration.Note() == "" {
				t.Error("nothing to show")
			}
		})
	}
}

// A warm-up's requests calibrate the measured ones.
func TestCalibrationIsShared(t *testing.T) {
	t.Parallel()
	var calibration benchmark.Calibration
	o := benchmark.FeedOptions{Salt: "warmup", Endpoint: benchmark.EndpointChat, Palette: wordedPalette(), Calibration: &calibration}
	warmup := benchmark.NewFeedWith(lengths(5, 60, 4), o)
	for range 2 {
		p := warmup.Next()
		warmup.(benchmark.Learner).Learn(p, count(t, p, 20))
	}
	o.Salt = "measured"
	if p := benchmark.NewFeedWith(lengths(5, 60, 4), o).Next(); count(t, p, 20).Prompt != 60 {
		t.Errorf("the first measured prompt is counted as %d tokens", count(t, p, 20).Prompt)
	}
}

func TestCalibrationIgnoresWhatIsNoConstant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		input   []int
		counted func(words, i int) int
	}{
		{"a fixed count, all rows alike", []int{60, 60, 60}, func(int, int) int { return 99 }},
		{"a fixed count", []int{60, 70, 80}, func(int, int) int { return 99 }},
		{"a share of the words", []int{60, 80, 200, 500}, func(words, _ int) int { return words + words/10 }},
		{"fewer than the words", []int{60}, func(words, _ int) int { return words - 5 }},
		{"more than any template", []int{60}, func(words, _ int) int { return words + 5000 }},
		{"no count", []int{60}, func(int, int) int { return 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var rows []benchmark.Row
			for i, n := range c.input {
				rows = append(rows, benchmark.Row{Number: i, InputTokens: n, OutputTokens: 1})
			}
			var calibration benchmark.Calibration
			feed := benchmark.NewFeedWith(benchmark.NewWorkload(rows, 0), benchmark.FeedOptions{Palette: benchmark.WordPalette("test"), Calibration: &calibration})
			for i := range 20 {
				p := feed.Next()
				feed.(benchmark.Learner).Learn(p, benchmark.Request{Prompt: c.counted(len(strings.Fields(p.Text)), i)})
			}
			if offset, ok := calibration.Learned(); ok || offset != 0 {
				t.Errorf("learned %d from no constant", offset)
			}
			if p := feed.Next(); len(strings.Fields(p.Text)) != p.InputTokens {
				t.Errorf("%d words for %d tokens", len(strings.Fields(p.Text)), p.InputTokens)
			}
		})
	}
}

func TestCalibrationLeavesOtherPromptsAlone(t *testing.T) {
	t.Parallel()
	var calibration benchmark.Calibration
	o := benchmark.FeedOptions{Endpoint: benchmark.EndpointGenerate, Palette: wordedPalette(), Calibration: &calibration}
	feed := benchmark.NewFeedWith(lengths(3, 60, 4), o)
	for range 5 {
		p := feed.Next()
		feed.(benchmark.Learner).Learn(p, benchmark.Request{Prompt: 61})
	}
	if _, ok := calibration.Learned(); ok {
		t.Error("learned from prompts of ids")
	}
	o.Calibration = nil
	feed = benchmark.NewFeedWith(lengths(3, 60, 4), o)
	feed.(benchmark.Learner).Learn(feed.Next(), benchmark.Request{Prompt: 61})
	var none *benchmark.Calibration
	if _, ok := none.Learned(); ok || none.Note() != "" {
		t.Error("no calibration learned something")
	}
}

// A prompt keeps at least one word, and an odd answer now and then changes nothing.
func TestCalibrationOfShortPromptsAndOddAnswers(t *testing.T) {
	t.Parallel()
	var calibration benchmark.Calibration
	feed := benchmark.NewFeedWith(lengths(3, 5, 4), benchmark.FeedOptions{Palette: benchmark.WordPalette("test"), Calibration: &calibration})
	learn := func(adds int) {
		p := feed.Next()
		feed.(benchmark.Learner).Learn(p, count(t, p, adds))
	}
	learn(40)
	learn(40)
	if p := feed.Next(); len(strings.Fields(p.Text)) != 1 {
		t.Errorf("a prompt of %q", p.Text)
	}
	for range 10 {
		learn(3)
		learn(40)
	}
	if offset, ok := calibration.Learned(); !ok || offset != 40 {
		t.Errorf("learned %d, %v", offset, ok)
	}
}

func TestCalibrationIsSafeForManyClients(t *testing.T) {
	t.Parallel()
	var calibration benchmark.Calibration
	feed := benchmark.NewFeedWith(lengths(3, 50, 4), benchmark.FeedOptions{Endpoint: benchmark.EndpointChat, Palette: wordedPalette(), Calibration: &calibration})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 20 {
				p := feed.Next()
				feed.(benchmark.Learner).Learn(p, count(t, p, 9))
			}
		})
	}
	clients.Wait()
	if offset, ok := calibration.Learned(); !ok || offset != 9 {
		t.Errorf("learned %d, %v", offset, ok)
	}
}
