package main

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
)

type script struct {
	chunks [][]byte // one HTTP chunk per SSE event that carries tokens
	ntok   []int    // tokens carried by each
	tail   []byte   // [DONE] and the last HTTP chunk
	usage  []byte   // the usage event, sent before tail when the request asks for it
	full   []byte   // non-streaming body
}

type key struct {
	kind byte
	n    int
}

var (
	smu     sync.RWMutex
	scripts = map[key]*script{}
)

func frame(b []byte) []byte { return []byte(fmt.Sprintf("%x\r\n%s\r\n", len(b), b)) }
func word(i int) string     { return "w" + strconv.Itoa(i%1000) + " " }

func build(kind byte, n int) *script {
	s := &script{}
	const created = 1750000000
	id := "cmpl-0123456789abcdef0123456789abcdef"
	var cum bytes.Buffer
	var ids bytes.Buffer
	for i := 0; i < n; {
		k := min(*perChunk, n-i)
		var txt string
		for j := 0; j < k; j++ {
			txt += word(i + j)
			if *cumul && ids.Len() > 0 {
				ids.WriteString(", ")
			}
			ids.WriteString(strconv.Itoa((i + j) % 1000))
		}
		i += k
		cum.WriteString(txt)
		last := i >= n
		fr, fg := "null", "null"
		if last {
			fr = `"length"`
			fg = fmt.Sprintf(`{"type":"length","length":%d}`, n)
		}
		var ev string
		switch kind {
		case 'c':
			ev = fmt.Sprintf(`data: {"id":"%s","object":"text_completion","created":%d,"model":"%s","choices":[{"index":0,"text":"%s","logprobs":null,"finish_reason":%s,"matched_stop":null}],"usage":null}`, id, created, *model, txt, fr)
		case 'h':
			role := "null"
			if i == k {
				role = `"assistant"`
			}
			ev = fmt.Sprintf(`data: {"id":"%s","object":"chat.completion.chunk","created":%d,"model":"%s","choices":[{"index":0,"delta":{"role":%s,"content":"%s","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":%s,"matched_stop":null}],"usage":null}`, id, created, *model, role, txt, fr)
		case 'g':
			t, d := txt, ids.String()
			if *cumul {
				t = cum.String()
			} else {
				ids.Reset()
			}
			ev = fmt.Sprintf(`data: {"text":"%s","output_ids":[%s],"meta_info":{"id":"%s","finish_reason":%s,"prompt_tokens":16,"weight_version":"default","total_retractions":0,"completion_tokens":%d,"cached_tokens":0}}`, t, d, id, fg, i)
		}
		s.chunks = append(s.chunks, frame([]byte(ev+"\n\n")))
		s.ntok = append(s.ntok, k)
	}
	usage := fmt.Sprintf(`{"prompt_tokens":16,"total_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":null,"reasoning_tokens":0}`, 16+n, n)
	var tail bytes.Buffer
	switch kind {
	case 'c':
		s.usage = frame([]byte(fmt.Sprintf("data: {\"id\":\"%s\",\"object\":\"text_completion\",\"created\":%d,\"model\":\"%s\",\"choices\":[],\"usage\":%s}\n\n", id, created, *model, usage)))
		s.full = []byte(fmt.Sprintf(`{"id":"%s","object":"text_completion","created":%d,"model":"%s","choices":[{"index":0,"text":"%s","logprobs":null,"finish_reason":"length"}],"usage":%s}`, id, created, *model, cum.String(), usage))
	case 'h':
		s.usage = frame([]byte(fmt.Sprintf("data: {\"id\":\"%s\",\"object\":\"chat.completion.chunk\",\"created\":%d,\"model\":\"%s\",\"choices\":[],\"usage\":%s}\n\n", id, created, *model, usage)))
		s.full = []byte(fmt.Sprintf(`{"id":"%s","object":"chat.completion","created":%d,"model":"%s","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"length"}],"usage":%s}`, id, created, *model, cum.String(), usage))
	case 'g':
		s.full = []byte(fmt.Sprintf(`{"text":"%s","output_ids":[],"meta_info":{"id":"%s","finish_reason":{"type":"length","length":%d},"prompt_tokens":16,"completion_tokens":%d,"cached_tokens":0}}`, cum.String(), id, n, n))
	}
	tail.Write(frame([]byte("data: [DONE]\n\n")))
	tail.WriteString("0\r\n\r\n")
	s.tail = tail.Bytes()
	return s
}

func get(kind byte, n int) *script {
	k := key{kind, n}
	smu.RLock()
	s := scripts[k]
	smu.RUnlock()
	if s != nil {
		return s
	}
	smu.Lock() // one builder: a thousand first requests at once must not all build
	defer smu.Unlock()
	if s = scripts[k]; s == nil {
		s = build(kind, n)
		scripts[k] = s
	}
	return s
}
