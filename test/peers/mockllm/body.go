package main

import (
	"bytes"
)

// intField finds "name": <digits> anywhere in the body, without parsing it.
func intField(body []byte, name string) (int, bool) {
	i := bytes.LastIndex(body, []byte(`"`+name+`"`))
	if i < 0 {
		return 0, false
	}
	j := i + len(name) + 2
	for j < len(body) && (body[j] == ' ' || body[j] == ':') {
		j++
	}
	v, ok := 0, false
	for j < len(body) && body[j] >= '0' && body[j] <= '9' {
		v, ok = v*10+int(body[j]-'0'), true
		j++
	}
	return v, ok
}

func isStream(body []byte) bool {
	i := bytes.LastIndex(body, []byte(`"stream"`))
	if i < 0 {
		return false
	}
	t := bytes.TrimLeft(body[i+8:min(len(body), i+20)], " :")
	return bytes.HasPrefix(t, []byte("true"))
}

// wantsUsage reports whether a request asks for the usage event at the end of its stream.
func wantsUsage(body []byte) bool {
	i := bytes.LastIndex(body, []byte(`"include_usage"`))
	return i >= 0 && bytes.HasPrefix(bytes.TrimLeft(body[i+15:], " :"), []byte("true"))
}

// asked is how many tokens a request wants.
func asked(body []byte) int {
	for _, f := range []string{"max_completion_tokens", "max_tokens", "max_new_tokens"} {
		if v, ok := intField(body, f); ok && v > 0 {
			return v
		}
	}
	return *tokens
}
