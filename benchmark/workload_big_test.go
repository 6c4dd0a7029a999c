package benchmark

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// repeated is the same rows again and again, n times.
type repeated struct {
	text []byte
	n    int
}

func (r repeated) bytes() int64 { return int64(len(r.text)) * int64(r.n) }

func (r repeated) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && off < r.bytes() {
		k := copy(p[n:], r.text[off%int64(len(r.text)):])
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// mooncakeText is n rows of about 12,000 tokens, the first 8 of their 24 blocks shared by all.
func mooncakeText(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [0, 1, 2, 3, 4, 5, 6, 7`, 100*i, 11_800+i%400, 100+i%400)
		for k := range 16 {
			fmt.Fprintf(&b, ", %d", 8+16*i+k)
		}
		b.WriteString("]}\n")
	}
	return b.Bytes()
}

// promptText is a row with a text of size bytes.
func promptText(size int) []byte {
	return fmt.Appendf(nil, `{"prompt":"%s","output_tokens":9}`+"\n", strings.Repeat("word ", size/5))
}

// TestBigWorkloadsStayOnDisk reads files many times bigger than the memory they may take.
func TestBigWorkloadsStayOnDisk(t *testing.T) {
	type file struct {
		name string
		text repeated
		rows int
		most int64 // MB of heap
	}
	files := []file{
		{"mooncake", repeated{mooncakeText(1000), 75}, 75_000, 24},
		{"texts", repeated{promptText(40_000), 500}, 500, 14},
	}
	if !testing.Short() {
		files = []file{
			{"mooncake", repeated{mooncakeText(1000), 800}, 800_000, 32},
			{"texts", repeated{promptText(40_000), 3000}, 3000, 32},
			{"huge texts", repeated{promptText(4 << 20), 30}, 30, 80},
		}
	}
	for _, c := range files {
		before, start, most := heapInUse(), time.Now(), watchHeap()
		w, err := readWorkload(&fileBytes{path: c.name, at: c.text, size: c.text.bytes()}, ReadOptions{}, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1, w.Len() / 2, w.Len() - 1} {
			if r := w.Row(i); r.Err != nil {
				t.Errorf("%s: row %d: %v", c.name, i, r.Err)
			}
		}
		used := (int64(most()) - int64(before)) >> 20
		t.Logf("%s: %d rows, %d MB read in %v, %d MB of memory at most", c.name, w.Len(), c.text.bytes()>>20, time.Since(start).Round(time.Millisecond), used)
		if w.Len() != c.rows || used > c.most {
			t.Errorf("%s: %d rows, want %d; %d MB, want at most %d", c.name, w.Len(), c.rows, used, c.most)
		}
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// watchHeap samples the heap; the function it returns ends that and gives the most it has seen.
func watchHeap() (most func() uint64) {
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-stop:
				done <- peak
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-done
	}
}

// TestDiskEqualsMemory reads every tiny file both ways.
func TestDiskEqualsMemory(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/workloads/*/*.*")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, path := range files {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "README") || strings.HasPrefix(name, "LICENSE") || name == "expected.json" {
			continue
		}
		var all [2][]Row
		for k, keep := range []int64{keepBytes, 0} {
			b, err := openFile(path)
			if err != nil {
				t.Fatal(err)
			}
			w, err := readWorkload(b, ReadOptions{}, keep)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range w.All() {
				all[k] = append(all[k], r)
			}
		}
		if !reflect.DeepEqual(all[0], all[1]) {
			t.Errorf("%s: %d rows in memory, %d others on disk", path, len(all[0]), len(all[1]))
		}
		read++
	}
	if read < 20 {
		t.Errorf("only %d files", read)
	}
}

// TestUnsortedOnDisk puts rows into order of time, equal ones in file order.
func TestUnsortedOnDisk(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 4096 {
		fmt.Fprintf(&text, `{"timestamp":%d,"input_length":%d,"output_length":1}`+"\n", (i^37)/2, i+1)
	}
	for _, keep := range []int64{keepBytes, 0} {
		w, err := readWorkload(textFile([]byte(text.String())), ReadOptions{TimeUnit: "ms"}, keep)
		if err != nil {
			t.Fatal(err)
		}
		before := Row{Number: -1}
		for i, r := range w.All() {
			if want := time.Duration(i/2) * time.Millisecond; r.At != want || i%2 == 1 && r.Number < before.Number {
				t.Fatalf("keep %d: row %d is number %d at %v, want %v", keep, i, r.Number, r.At, want)
			}
			before = r
		}
		if g := w.known().gaps; g.last-g.first < 2.0469 || g.last-g.first > 2.0471 {
			t.Errorf("%g s", g.last-g.first)
		}
	}
}

// TestChangedFile: a file that changes while it is replayed is an error of the row.
func TestChangedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.jsonl")
	line := `{"input_length":100,"output_length":1}` + "\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := readWorkload(b, ReadOptions{}, 0)
	if err != nil || w.Row(0).Err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1000); err != nil {
		t.Fatal(err)
	}
	if err := w.Row(4999).Err; err == nil || !strings.Contains(err.Error(), "changed while it was replayed") {
		t.Errorf("a truncated file: %v", err)
	}
}

// TestCompressed reads a gzip file by its content, rows in any order.
func TestCompressed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "workload")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	for i := range 3000 {
		fmt.Fprintf(z, `{"input_length":%d,"output_length":1}`+"\n", i+1)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := readWorkload(b, ReadOptions{}, 0)
	if err != nil || w.Len() != 3000 || w.Path != path {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for k := range 4 {
		readers.Go(func() {
			for i := range 3000 {
				i = (i*(2*k+1) + 500*k) % 3000
				if r := w.Row(i); r.InputTokens != i+1 || r.Number != i {
					t.Errorf("row %d: %+v", i, r)
					return
				}
			}
		})
	}
	readers.Wait()
	if err := os.Truncate(path, 40); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadWorkload(path); err == nil || !strings.Contains(err.Error(), "cannot be unpacked") {
		t.Errorf("a gzip file cut short: %v", err)
	}
}

// BenchmarkReadWorkload reads a trace that stays on disk.
func BenchmarkReadWorkload(b *testing.B) {
	text := mooncakeText(20_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readWorkload(textFile(text), ReadOptions{}, 0); err != nil {
			b.Fatal(err)
		}
	}
}
