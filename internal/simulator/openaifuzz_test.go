package simulator

import (
	"encoding/json"
	"strings"
	"testing"
)

// No body brings a server down, and one that is no JSON never becomes a request.
func FuzzOpenAIBody(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","prompt":"a b","max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[1,2,3]}`, `{"prompt":[[1,2]]}`, `{"prompt":["a\u00e9"]}`, `{"prompt":{}}`, `{"prompt":1e3,"max_tokens":"x"}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":null,"tool_calls":[1]}],"tools":[{}]}`,
		`{"messages":[{"content":5,"role":""}]}`, `{"messages":"a","n":2}`, `[`, `"`, `{"rid":"\ud800","model":null}`, `{"a":[[[[`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, parse := range []func(a *asker) error{parseCompletion, parseChat} {
			a := newAsker(newestDialect(), 163840, []byte(body))
			err := parse(a)
			if err == nil {
				if a.prompt.Len == 0 || a.maxNew < 0 {
					t.Errorf("%q became %+v", body, a.ask)
				}
				if strings.Trim(body, " \t\r\n") == "" || body[len(strings.TrimRight(body, " \t\r\n"))-1] != '}' {
					t.Errorf("%q is no object", body)
				}
				c := newChunks(&Settings{}, newestDialect(), &a.ask, 0)
				if text := c.whole(nil, progress{out: 5, done: true}); json.Valid([]byte(a.model)) && !json.Valid(text) {
					t.Errorf("%q is answered with %s", body, text)
				}
			} else if err.Error() == "" {
				t.Errorf("%q is refused without a word", body)
			}
		}
	})
}
