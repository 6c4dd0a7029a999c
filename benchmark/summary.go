package benchmark

import (
	"encoding/json"
	"slices"
)

// Summary is what a workload is, to be shown before anything is sent. Figures that the file does not
// tell are nil or left out.
type Summary struct {
	Format      string         `json:"format"`
	TimeUnit    string         `json:"time_unit,omitempty"` // of the file's times, "" without times and for dates
	Rows        int            `json:"rows"`                // of the file, dropped ones too
	Kept        int            `json:"kept"`
	Dropped     map[string]int `json:"dropped"` // reason to count
	BlockTokens int            `json:"block_tokens,omitempty"`
	Requests    int            `json:"requests"` // the turns of conversations counted one by one
	// Of the kept rows: of a conversation the new messages of all turns, and all answers.
	InputTokens  *TokenLengths   `json:"input_tokens"`
	OutputTokens *TokenLengths   `json:"output_tokens"`
	Arrivals     *ArrivalSummary `json:"arrivals,omitempty"`
	Prefix       *PrefixSummary  `json:"prefix,omitempty"`
	First        []FirstRequest  `json:"first"` // the first 100 kept rows in sending order
	Notes        []string        `json:"notes,omitempty"`
}

// TokenLengths is a distribution of token counts; percentiles by nearest rank.
type TokenLengths struct {
	Min       int     `json:"min"`
	Mean      float64 `json:"mean"`
	P50       int     `json:"p50"`
	P90       int     `json:"p90"`
	P99       int     `json:"p99"`
	Max       int     `json:"max"`
	Total     int64   `json:"total"`
	Estimated bool    `json:"estimated,omitempty"` // some come from the length of a text, four bytes a token
	Unsaid    int     `json:"unsaid,omitempty"`    // rows for which the file says none: they count with what is asked for at most
}

// ArrivalSummary is what the arrival times look like, as the file has them.
type ArrivalSummary struct {
	DurationS float64  `json:"duration_s"`       // from the first to the last
	MeanRate  *float64 `json:"mean_rate_rps"`    // (requests-1)/duration, nil when all arrive at once
	CV        *float64 `json:"interarrival_cv"`  // population standard deviation of the gaps over their mean
	Requests  int      `json:"requests"`         // that have a time of their own
	Absurd    string   `json:"absurd,omitempty"` // why nobody would want to replay them as they are
}

// PrefixSummary is what an endless prefix cache would save, rows in sending order: leading ids seen
// before, times the block size, at most the row's length.
type PrefixSummary struct {
	BlockTokens int     `json:"block_tokens"`
	TokenRatio  float64 `json:"prefix_hit_token_ratio"` // of all input tokens
	BlockRatio  float64 `json:"prefix_hit_block_ratio"` // of all ids
}

// FirstRequest is one of the first rows.
type FirstRequest struct {
	ArrivalS        *float64        `json:"arrival_s,omitempty"`
	InputTokens     *int            `json:"input_tokens,omitempty"`
	OutputTokens    *int            `json:"output_tokens"` // nil when the file says none
	Estimated       bool            `json:"estimated,omitempty"`
	Session         json.RawMessage `json:"session,omitempty"` // as in the file: a number or a string
	URL             string          `json:"url,omitempty"`
	UserTurns       int             `json:"user_turns,omitempty"`        // requests of a conversation
	PrefixHitTokens *int            `json:"prefix_hit_tokens,omitempty"` // in an endless cache
	AfterS          *float64        `json:"after_s,omitempty"`           // it starts so long after its session's previous row has ended
}

// firstRows is how many rows a summary shows.
const firstRows = 100

// Summary says what the workload is.
func (w *Workload) Summary() Summary {
	f := w.known()
	s := Summary{
		Format: w.Format, TimeUnit: w.TimeUnit, Rows: w.rowCount(), Kept: w.Len(), Dropped: w.Dropped, BlockTokens: w.BlockTokens, Requests: f.requests,
		InputTokens: f.input.lengths(), OutputTokens: f.output.lengths(), Arrivals: w.arrivalSummary(), Notes: slices.Clone(w.Notes),
	}
	if s.Dropped == nil {
		s.Dropped = map[string]int{}
	}
	if s.InputTokens != nil {
		s.InputTokens.Estimated = f.texts > 0
		s.OutputTokens.Estimated, s.OutputTokens.Unsaid = w.guessesOutputs(), f.open
	}
	if f.prefix.blocks > 0 {
		s.Prefix = &PrefixSummary{BlockTokens: w.BlockTokens, TokenRatio: w.Reuse, BlockRatio: f.prefix.blockRatio()}
	}
	s.First = w.first()
	return s
}

func (w *Workload) guessesOutputs() bool {
	return slices.ContainsFunc(formats(), func(f format) bool { return f.name == w.Format && f.outputs })
}

func (w *Workload) arrivalSummary() *ArrivalSummary {
	g := w.known().gaps
	if !w.Timed || g.n == 0 {
		return nil
	}
	a := &ArrivalSummary{DurationS: g.last - g.first, Requests: g.n}
	if rate := g.rate(); rate > 0 {
		a.MeanRate = &rate
	}
	if cv, ok := g.variation(); ok {
		a.CV = &cv
	}
	if err := w.CheckArrivals(); err != nil {
		a.Absurd = err.Error()
	}
	return a
}

// lengths is nil without any.
func (c *tokenCounts) lengths() *TokenLengths {
	if c.n == 0 {
		return nil
	}
	return &TokenLengths{
		Min: c.min, Mean: c.mean(), P50: c.quantile(0.5), P90: c.quantile(0.9), P99: c.quantile(0.99), Max: c.max, Total: c.total,
	}
}

// first describes the first rows.
func (w *Workload) first() []FirstRequest {
	list := []FirstRequest{}
	cache := prefixTally{block: w.BlockTokens}
	guesses := w.guessesOutputs()
	for i, r := range w.All() {
		if i == firstRows {
			break
		}
		q := FirstRequest{URL: r.Path, UserTurns: len(r.Turns), Session: sessionJSON(r.Session)}
		input := r.Input()
		q.InputTokens, q.Estimated = &input, r.InputTokens == 0 || guesses
		if !r.Open {
			q.OutputTokens = &r.OutputTokens
		}
		if r.Follows {
			pause := r.Pause.Seconds()
			q.AfterS = &pause
		} else if w.Timed {
			at := r.At.Seconds()
			q.ArrivalS = &at
		}
		hit := cache.add(r.HashIDs, input)
		if w.BlockTokens > 0 {
			q.PrefixHitTokens = &hit
		}
		list = append(list, q)
	}
	return list
}

// sessionJSON is a session as JSON; one that isn't (of rows made by a program) becomes a string.
func sessionJSON(session string) json.RawMessage {
	if session == "" || json.Valid([]byte(session)) {
		return json.RawMessage(session)
	}
	text, err := json.Marshal(session)
	if err != nil { // a string never fails
		return nil
	}
	return text
}
