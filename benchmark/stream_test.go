package benchmark

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// payloads reads a whole body.
func payloads(r io.Reader) (all []string, err error) {
	var d decoder
	d.reset(&pieces{from: r})
	for {
		p, err := d.next()
		if err != nil {
			return all, err
		}
		all = append(all, string(p))
	}
}

// pieces reads a body as a connection hands it out.
type pieces struct {
	from io.Reader
	buf  [4096]byte
}

func (p *pieces) run() ([]byte, error) {
	n, err := p.from.Read(p.buf[:])
	if n > 0 {
		return p.buf[:n], nil
	}
	return nil, err
}

func TestDecoder(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"empty", "", nil},
		{"two events", "data: {\"a\":1}\n\ndata: [DONE]\n\n", []string{`{"a":1}`, "[DONE]"}},
		{"carriage returns", "data: 1\r\n\r\ndata: 2\r\n\r\n", []string{"1", "2"}},
		{"no space", "data:1\n\n", []string{"1"}},
		{"other fields", ": ping\nevent: x\nid: 3\ndata: 1\nretry: 5\n\n", []string{"1"}},
		{"no last line end", "data: 1\n\ndata: 2", []string{"1", "2"}},
		{"longer than the buffer", "data: " + long + "\n\ndata: 2\n\n", []string{long, "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for how, r := range map[string]io.Reader{
				"whole":         strings.NewReader(c.body),
				"byte for byte": iotest.OneByteReader(strings.NewReader(c.body)),
				"data with EOF": iotest.DataErrReader(strings.NewReader(c.body)),
			} {
				got, err := payloads(r)
				if !errors.Is(err, io.EOF) {
					t.Errorf("%s: err = %v", how, err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

func TestDecoderPassesErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	got, err := payloads(io.MultiReader(strings.NewReader("data: 1\n\nda"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDecoderRefusesAnEndlessEvent(t *testing.T) {
	t.Parallel()
	endless := io.MultiReader(strings.NewReader("data: "), iotest.DataErrReader(bytes.NewReader(make([]byte, 2*maxEvent))))
	if _, err := payloads(endless); !errors.Is(err, errEventTooLong) {
		t.Errorf("err = %v", err)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event string
		want  int
		ok    bool
	}{
		{`{"meta_info":{"completion_tokens":42}}`, 42, true},
		{`{"meta_info":{"completion_tokens": 7,"x":1}}`, 7, true},
		{`{"text":"\"completion_tokens\":99","meta_info":{}}`, 0, false},
		{`{"meta_info":{"completion_tokens":3},"text":"\"completion_tokens\":99"}`, 3, true},
		{`{"meta_info":{"completion_tokens":null}}`, 0, false},
		{`{"meta_info":{"completion_tokens":`, 0, false},
		{``, 0, false},
	} {
		if got, ok := number([]byte(c.event), keyCompletion); got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %v; want %d, %v", c.event, got, ok, c.want, c.ok)
		}
	}
}

func TestDecodeFinal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, event string
		want        final
		fails       string
	}{
		{"complete", `{"text":"a","meta_info":{"finish_reason":{"type":"length","length":5},"prompt_tokens":9,"cached_tokens":4,"completion_tokens":5}}`, final{5, 9, 4}, ""},
		{"reason is a word", `{"meta_info":{"finish_reason":"stop","completion_tokens":5}}`, final{5, 0, 0}, ""},
		{"aborted", `{"meta_info":{"finish_reason":{"type":"abort","message":"queue is full"},"completion_tokens":5}}`, final{}, "queue is full"},
		{"no figures", `{"text":"a"}`, final{}, "completion_tokens"},
		{"half", `{"text":"a`, final{}, "not JSON"},
		{"none", ``, final{}, "not JSON"},
	} {
		got, err := decodeFinal([]byte(c.event))
		if got != c.want || (err == nil) != (c.fails == "") || (err != nil && !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

// FuzzDecoder compares the decoder with splitting the whole body at once, however the body is cut.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte("data: {\"meta_info\":{\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"), 3)
	f.Add([]byte(": x\r\ndata:1\r\ndata"), 1)
	f.Fuzz(func(t *testing.T, body []byte, chunk int) {
		var want []string
		for _, line := range bytes.Split(body, []byte("\n")) {
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				want = append(want, string(bytes.TrimSpace(data)))
			}
		}
		got, err := payloads(&chunked{body, 1 + abs(chunk)%40})
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		for _, p := range got { // must not panic, whatever it reads
			number([]byte(p), keyCompletion)
			_, _ = decodeFinal([]byte(p))
			streamError([]byte(p))
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

// chunked reads a few bytes at a time.
type chunked struct {
	rest []byte
	size int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.rest[:min(c.size, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}
