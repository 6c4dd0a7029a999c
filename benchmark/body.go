package benchmark

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// errNoIDs is a prompt of token ids for an endpoint that only takes messages.
var errNoIDs = errors.New("a chat endpoint takes no token ids; prompts for it are made of words")

// requestHead is the start of every request, up to the value of Content-Length.
func requestHead(req *http.Request) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: sgtune\r\nAccept: text/event-stream\r\nAccept-Encoding: identity\r\n", req.URL.RequestURI(), req.URL.Host)
	_ = req.Header.Write(&b) // a buffer takes everything
	b.WriteString("Content-Length: ")
	return b.Bytes()
}

// appendBody writes the JSON of one request. Output lengths are forced, ignore_eos and the wanted length,
// unless the prompt is open; temperature 0 keeps the work the same in every trial. Fields the workload's own
// rows name (Row.Extra) win over ours.
func (s *sender) appendBody(b []byte, p Prompt) ([]byte, error) {
	extra, err := extraFields(p.Row.Extra)
	if err != nil {
		return nil, err
	}
	b = append(b, '{')
	if b, err = s.appendPrompt(b, p); err != nil {
		return nil, err
	}
	b = append(b, ',')
	if s.endpoint == EndpointGenerate {
		b = append(b, `"sampling_params":{"max_new_tokens":`...)
		b = strconv.AppendInt(b, int64(p.OutputTokens), 10)
		b = append(b, `,"temperature":0`...)
		if !p.Open {
			b = append(b, `,"ignore_eos":true`...)
		}
		return append(b, `},"stream":true}`...), nil
	}
	b = append(append(b, `"model":`...), s.model...)
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(p.OutputTokens), 10)
	if _, named := extra["temperature"]; !named {
		b = append(b, `,"temperature":0`...)
	}
	if _, named := extra["ignore_eos"]; !named && !p.Open {
		b = append(b, `,"ignore_eos":true`...)
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		b = append(append(appendString(append(b, ','), name), ':'), extra[name]...)
	}
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true`...)
	if s.continuous {
		b = append(b, `,"continuous_usage_stats":true`...)
	}
	return append(b, `}}`...), nil
}

// ours are the fields of a request that no row may set: what is measured depends on them.
var ours = []string{"prompt", "messages", "model", "max_tokens", "max_completion_tokens", "stream", "stream_options", "n"}

func extraFields(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	for _, name := range ours {
		delete(fields, name)
	}
	return fields, nil
}

// appendPrompt writes what is asked, in the endpoint's words.
func (s *sender) appendPrompt(b []byte, p Prompt) ([]byte, error) {
	said := p.Text
	if p.Messages != nil && s.endpoint != EndpointChat {
		said = RenderText(p.Messages)
	}
	switch {
	case s.endpoint == EndpointChat && p.IDs != nil:
		return nil, errNoIDs
	case s.endpoint == EndpointChat && p.Messages != nil:
		b = append(b, `"messages":[`...)
		for i, m := range p.Messages {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, m...)
		}
		return append(b, ']'), nil
	case s.endpoint == EndpointChat:
		b = append(b, `"messages":[{"role":"user","content":`...)
		return append(appendString(b, said), `}]`...), nil
	case p.IDs == nil && s.endpoint == EndpointGenerate:
		return appendString(append(b, `"text":`...), said), nil
	case p.IDs == nil:
		return appendString(append(b, `"prompt":`...), said), nil
	}
	name := `"prompt":[`
	if s.endpoint == EndpointGenerate {
		name = `"input_ids":[`
	}
	b = append(b, name...)
	for i, id := range p.IDs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']'), nil
}

func appendString(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // a string always has a JSON form
	return append(b, quoted...)
}
