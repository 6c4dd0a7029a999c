package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sgtune/benchmark"
)

// reportFile is the file of --out. It is begun before the load, so that a path that cannot be written is
// known before it costs anything, and takes its name only once it is whole.
type reportFile struct {
	path   string
	temp   *os.File
	device bool // a pipe or device that was there: written to as it is
}

func newReportFile(path string) (*reportFile, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, usagef("--out %s: is a folder; name a file in it", path)
	} else if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, usagef("--out %s: cannot be written: %s", path, reason(err))
		}
		return &reportFile{path: path, temp: f, device: true}, nil
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, usagef("--out %s: cannot be written: %s; the folder must exist and be writable", path, reason(err))
	}
	return &reportFile{path: path, temp: temp}, nil
}

// Write puts the whole report under the file's name.
func (f *reportFile) Write(report []byte) error {
	_, err := f.temp.Write(report)
	if !f.device {
		err = errors.Join(err, f.temp.Chmod(0o644), f.temp.Sync())
	}
	err = errors.Join(err, f.temp.Close())
	if err == nil && !f.device {
		err = os.Rename(f.temp.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("write the report to %s: %w", f.path, err)
	}
	f.temp = nil
	return nil
}

// Drop removes what is not finished.
func (f *reportFile) Drop() {
	if f == nil || f.temp == nil {
		return
	}
	_ = f.temp.Close() // nothing was written
	if !f.device {
		_ = os.Remove(f.temp.Name()) // a leftover harms nobody
	}
	f.temp = nil
}

// reportJSON is a report for people and programs: indented, one line at the end.
func reportJSON(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	return append(text, '\n'), nil
}

// csvHead are the columns of --csv (docs/report.md).
var csvHead = []string{
	"level", "load", "row", "turn", "at", "start_s", "lag_ms", "ttft_ms", "tpot_ms", "e2e_ms",
	"prompt", "prompt_wanted", "cached", "output", "wanted", "attempts", "failed", "error",
}

// csvFlush is how often what is written reaches the file, in real time.
const csvFlush = time.Second

// csvFile writes finished requests while a level runs. Write is not safe for concurrent use; benchmark.Run
// calls it for one request at a time.
type csvFile struct {
	path    string
	file    *os.File
	buffer  *bufio.Writer
	rows    *csv.Writer
	flushed time.Time
	level   int
	load    string
	start   time.Time
	mask    func(string) string
	record  []string
}

func newCSVFile(path string, mask func(string) string) (*csvFile, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, usagef("--csv %s: is a folder; name a file in it", path)
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, usagef("--csv %s: cannot be written: %s; the folder must exist and be writable", path, reason(err))
	}
	c := &csvFile{path: path, file: file, buffer: bufio.NewWriterSize(file, 64<<10), mask: mask}
	c.rows = csv.NewWriter(c.buffer)
	_ = c.rows.Write(csvHead) // Close tells
	return c, nil
}

// Level begins a load level, counted from 1; times of its requests count from start.
func (c *csvFile) Level(number int, load string, start time.Time) {
	if c != nil {
		c.level, c.load, c.start = number, load, start
	}
}

// Write adds one request.
func (c *csvFile) Write(q benchmark.Request) {
	if c == nil {
		return
	}
	tpot := ""
	if q.Failed == "" && q.Output > 1 {
		tpot = csvMs((q.E2E - q.TTFT) / time.Duration(q.Output-1))
	}
	ttft := ""
	if q.TTFT > 0 {
		ttft = csvMs(q.TTFT)
	}
	c.record = append(c.record[:0],
		strconv.Itoa(c.level), c.load, strconv.Itoa(q.Row), strconv.Itoa(q.Turn), q.Intended.UTC().Format(time.RFC3339Nano),
		strconv.FormatFloat(q.Intended.Sub(c.start).Seconds(), 'f', 6, 64), csvMs(q.Sent.Sub(q.Intended)), ttft, tpot, csvMs(q.E2E),
		strconv.Itoa(q.Prompt), strconv.Itoa(q.InputWanted), strconv.Itoa(q.Cached), strconv.Itoa(q.Output), strconv.Itoa(q.Wanted),
		strconv.Itoa(max(1, q.Attempts)), q.Failed, c.mask(q.Error))
	_ = c.rows.Write(c.record) // Close tells
	if now := time.Now(); now.Sub(c.flushed) >= csvFlush {
		c.flushed = now
		c.rows.Flush()
		_ = c.buffer.Flush() // Close tells
	}
}

func csvMs(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 3, 64)
}

// Close writes what is left and tells the first error of all writes.
func (c *csvFile) Close() error {
	if c == nil || c.file == nil {
		return nil
	}
	c.rows.Flush()
	err := c.rows.Error() // the same as that of Flush, where there are both
	if flushErr := c.buffer.Flush(); err == nil {
		err = flushErr
	}
	if closeErr := c.file.Close(); err == nil {
		err = closeErr
	}
	c.file = nil
	if err != nil {
		return fmt.Errorf("write the samples to %s: %w", c.path, err)
	}
	return nil
}
