package benchmark

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Row is one request of a workload: either lengths (with prefix block ids) or a text.
type Row struct {
	Number       int     // position in the file, from 0
	InputTokens  int     // wanted; 0 for a text of unknown length
	OutputTokens int     // wanted
	HashIDs      []int64 // ids of the prefix blocks, nil when the file has none
	Text         string  // prompt text, "" for rows of lengths
}

// bytesPerToken estimates the length of a text nobody has tokenized: English prose has about four
// bytes per token in the byte-level BPE vocabularies.
const bytesPerToken = 4

// Input is the row's prompt length in tokens; for a text it is an estimate.
func (r Row) Input() int {
	if r.InputTokens > 0 || r.Text == "" {
		return r.InputTokens
	}
	return len(r.Text)/bytesPerToken + 1
}

// Workload is a file that was read: rows in file order and what was dropped.
type Workload struct {
	Path        string
	Format      string // "mooncake" or "prompts"
	BlockTokens int    // tokens a hash id stands for, 0 without ids
	Rows        []Row
	Dropped     map[string]int // reason to count
	Reuse       float64        // prefix_hit_token_ratio of an endless cache over the rows in file order
	Notes       []string       // what was guessed or cut, to be shown
}

// ReadOptions overrides what ReadWorkload would guess. The zero value guesses everything.
type ReadOptions struct {
	Format      string // a name of the table in formats.go, "" = by the first row's keys
	BlockTokens int    // tokens a hash id stands for, 0 = from the rows, else 512
}

// maxLine bounds one line of a workload file: a million tokens of text is about 4 MB.
const maxLine = 64 << 20

// ReadWorkload reads a workload file and guesses its format and block size.
func ReadWorkload(path string) (*Workload, error) { return ReadWorkloadAs(path, ReadOptions{}) }

// ReadWorkloadAs reads a workload file with some things said beforehand. Rows that cannot be used
// are dropped and counted by reason; a file without a usable row is an error.
func ReadWorkloadAs(path string, opts ReadOptions) (*Workload, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be opened: %w", path, withoutPath(err))
	}
	defer f.Close() //nolint:errcheck // read only
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a folder; name a workload file", path)
	}
	return readWorkload(f, path, opts)
}

func readWorkload(r io.Reader, path string, opts ReadOptions) (*Workload, error) {
	w := &Workload{Path: path, Dropped: map[string]int{}}
	var how *format
	if opts.Format != "" {
		if how = formatNamed(opts.Format); how == nil {
			return nil, fmt.Errorf("%s: no workload format is called %q; known are %s", path, opts.Format, formatNames())
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	line, number := 0, 0
	for lines.Scan() {
		line++
		text := bytes.TrimSpace(lines.Bytes())
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // byte order mark
		}
		if len(text) == 0 {
			continue
		}
		if how == nil {
			var err error
			if how, err = detect(text); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, line, err)
			}
		}
		if how != nil {
			w.add(how, text, number)
		} else {
			w.Dropped[dropBadJSON]++
		}
		number++
	}
	if err := lines.Err(); err != nil {
		return nil, readError(path, line+1, err)
	}
	return w.finish(how, opts)
}

func readError(path string, line int, err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: line is longer than %d MB; is this a workload file?", path, line, maxLine>>20)
	}
	return fmt.Errorf("%s:%d: cannot be read: %w", path, line, withoutPath(err))
}

// withoutPath drops the path an *os.PathError repeats.
func withoutPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (w *Workload) add(how *format, text []byte, number int) {
	row, reason := how.parse(text)
	if reason != "" {
		w.Dropped[reason]++
		return
	}
	row.Number = number
	w.Rows = append(w.Rows, row)
}

// finish fills in what only the whole file can tell.
func (w *Workload) finish(how *format, opts ReadOptions) (*Workload, error) {
	if len(w.Rows) == 0 {
		if len(w.Dropped) == 0 {
			return nil, fmt.Errorf("%s: is empty; a workload needs at least one row", w.Path)
		}
		return nil, fmt.Errorf("%s: no usable row: %s; a row looks like %s", w.Path, w.droppedText(), exampleOf(how))
	}
	w.Format = how.name
	w.settleBlocks(opts.BlockTokens)
	w.Reuse = w.reuse()
	return w, nil
}

// droppedText lists the reasons, for example "bad_json 2, zero_input_tokens 1".
func (w *Workload) droppedText() string {
	var parts []string
	for reason, n := range w.Dropped {
		parts = append(parts, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// PromptTokens is the sum of all prompt lengths (texts: estimated).
func (w *Workload) PromptTokens() int64 {
	var sum int64
	for _, r := range w.Rows {
		sum += int64(r.Input())
	}
	return sum
}

// MeanInput is the mean prompt length in tokens (texts: estimated).
func (w *Workload) MeanInput() float64 { return float64(w.PromptTokens()) / float64(len(w.Rows)) }

// MeanOutput is the mean wanted output in tokens.
func (w *Workload) MeanOutput() float64 {
	var sum int64
	for _, r := range w.Rows {
		sum += int64(r.OutputTokens)
	}
	return float64(sum) / float64(len(w.Rows))
}

// MaxTokens is the largest prompt + output of any row: what a server's context length must hold.
func (w *Workload) MaxTokens() int {
	most := 0
	for _, r := range w.Rows {
		most = max(most, r.Input()+r.OutputTokens)
	}
	return most
}

// InputQuantile is the prompt length below or at which a fraction q of the rows lies, nearest rank.
func (w *Workload) InputQuantile(q float64) int {
	lengths := make([]int, len(w.Rows))
	for i, r := range w.Rows {
		lengths[i] = r.Input()
	}
	slices.Sort(lengths)
	return lengths[nearestRank(len(lengths), q)]
}

// Longest is the part of the workload whose prompts are at least as long as the quantile q, in file
// order: what the canary sends.
func (w *Workload) Longest(q float64) *Workload {
	least := w.InputQuantile(q)
	part := *w
	part.Rows = slices.DeleteFunc(slices.Clone(w.Rows), func(r Row) bool { return r.Input() < least })
	part.Reuse = part.reuse()
	return &part
}

// keysOf returns the keys of a JSON object, nil when the text is none.
func keysOf(text []byte) map[string]json.RawMessage {
	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) != nil {
		return nil
	}
	return keys
}
