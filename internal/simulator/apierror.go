package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// apiError is a refusal in the words of SGLang's /v1 endpoints.
type apiError struct {
	status int
	kind   string // "type" of the body
	text   string
}

// Error is the message of the body.
func (e *apiError) Error() string { return e.text }

func badRequest(format string, a ...any) error {
	return &apiError{http.StatusBadRequest, "BadRequestError", fmt.Sprintf(format, a...)}
}

// fieldError is a body that is not of the wanted shape, in the words of Python's pydantic.
type fieldError struct {
	kind  string // missing, int_parsing, ...
	loc   string // 'max_tokens', after 'body'
	msg   string
	input []byte // JSON of the value
	ctx   string // Python of what more there is, "" = nothing
}

// Error is the entry of the list that pydantic makes, as Python prints it.
func (e *fieldError) Error() string {
	loc := "('body',)"
	if e.loc != "" {
		loc = "('body', " + e.loc + ")"
	}
	text := fmt.Sprintf("{'type': '%s', 'loc': %s, 'msg': %s, 'input': %s", e.kind, loc, pyString(e.msg), pyOfJSON(e.input))
	if e.ctx != "" {
		text += ", 'ctx': {'error': " + e.ctx + "}"
	}
	return text + "}"
}

// errorBody is the body of an error: the object itself, as JSON.
func errorBody(text, kind string, code int) []byte {
	b := appendQuoted([]byte(`{"object":"error","message":`), text)
	b = appendQuoted(append(b, `,"type":`...), kind)
	return append(field(b, `,"param":null,"code":`, code), '}')
}

// handlers of http_server.py, for the traceback in a validation message.
var handlers = map[string]string{
	"/v1/completions": "openai_v1_completions", "/v1/chat/completions": "openai_v1_chat_completions",
	"/tokenize": "openai_v1_tokenize", "/v1/tokenize": "openai_v1_tokenize",
}

// validation is the message of a body of the wrong shape: newer releases of FastAPI name the handler.
func (d *dialect) validation(item, path string) string {
	if d.release < r0510 {
		return "[" + item + "]"
	}
	return fmt.Sprintf("1 validation error:\n  %s\n\n  File \"/usr/local/lib/python3.12/dist-packages/sglang/srt/entrypoints/http_server.py\", line %d, in %s\n    POST %s [%s]",
		item, 1860, handlers[path], path, item)
}

// refuse answers a /v1 request that could not be read. 0.4.6 reads bodies by hand: bad JSON is a 400 with the
// words in the wrong place, and anything else pydantic finds is its 500.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, at int, err error) {
	var api *apiError
	var wrong *fieldError
	old := s.l.d.release == r046
	switch {
	case errors.As(err, &api):
		reply(w, api.status, errorBody(api.text, api.kind, api.status))
	case errors.As(err, &wrong) && old:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("Internal Server Error"))
	case errors.As(err, &wrong):
		reply(w, http.StatusBadRequest, errorBody(s.l.d.validation(wrong.Error(), r.URL.Path), "Bad Request", http.StatusBadRequest))
	case old:
		reply(w, http.StatusBadRequest, errorBody("Invalid request body, error: ", fmt.Sprintf("Expecting value: line 1 column %d (char %d)", at+1, at), http.StatusBadRequest))
	case errors.Is(err, errJSON):
		item := fmt.Sprintf("{'type': 'json_invalid', 'loc': ('body', %d), 'msg': 'JSON decode error', 'input': {}, 'ctx': {'error': 'unexpected character or end of data'}}", at)
		reply(w, http.StatusBadRequest, errorBody(s.l.d.validation(item, r.URL.Path), "Bad Request", http.StatusBadRequest))
	default:
		reply(w, http.StatusBadRequest, errorBody(err.Error(), "BadRequestError", http.StatusBadRequest))
	}
}

// mediaType refuses a body that does not call itself JSON, as 0.4.9 and later do; true when it answered.
func (s *server) mediaType(w http.ResponseWriter, r *http.Request) bool {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if s.l.d.release < r049 || strings.EqualFold(media, "application/json") {
		return false
	}
	const item = `{'loc': ['header', 'content-type'], 'msg': "Unsupported Media Type: Only 'application/json' is allowed", 'type': 'value_error'}`
	text := "[" + item + "]"
	if s.l.d.release >= r0510 {
		text = "1 validation error:\n  " + item + " [" + item + "]"
	}
	reply(w, http.StatusBadRequest, errorBody(text, "Bad Request", http.StatusBadRequest))
	return true
}

// streamError is a refusal that comes after the headers of a stream: Python's json.dumps puts spaces.
func streamError(b []byte, text, kind string, code int) []byte {
	b = appendQuoted(append(b, `data: {"error": {"object": "error", "message": `...), text)
	b = appendQuoted(append(b, `, "type": `...), kind)
	return append(field(b, `, "param": null, "code": `, code), "}}\n\ndata: [DONE]\n\n"...)
}

// appendQuoted adds a string as JSON.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...) // cannot happen: a string always has a JSON text
			}
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
