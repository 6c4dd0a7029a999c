package simulator

import "strconv"

// chunks spells the answer to one request at an OpenAI endpoint as its version of SGLang does: field order, which
// nulls are printed, and where usage stands.
type chunks struct {
	answer
	d       *dialect
	ask     *ask
	head    []byte // up to the choices
	report  bool   // --enable-cache-report
	natural bool   // the model stopped by itself
	told    int
	started bool
}

func newChunks(s *Settings, d *dialect, a *ask, created int64) *chunks {
	c := &chunks{answer: newAnswer(a.prompt), d: d, ask: a, report: s.CacheReport}
	a.usage = a.usage || s.DefaultUsage
	a.running = a.running && d.release >= r055
	object := "text_completion"
	if a.chat {
		object = "chat.completion"
		if a.stream {
			object = "chat.completion.chunk"
		}
	}
	b := make([]byte, 0, 160+len(a.model)+len(a.rid))
	b = appendQuoted(append(b, `{"id":`...), a.rid)
	b = append(append(append(b, `,"object":"`...), object...), `","created":`...)
	b = strconv.AppendInt(b, created, 10)
	b = append(append(b, `,"model":`...), a.model...)
	c.head = append(b, `,"choices":[`...)
	return c
}

// events adds the events of one progress, all but [DONE].
func (c *chunks) events(b []byte, p progress) []byte {
	if c.ask.chat {
		b = c.chatEvents(b, p)
	} else {
		b = c.completionEvents(b, p)
	}
	c.told = p.out
	if !p.done || !c.ask.usage || c.ask.chat && c.d.release == r046 {
		return b
	}
	b = append(c.begin(b), `],"usage":`...)
	return append(c.usage(b, p, c.report, c.ask.chat), "}\n\n"...)
}

func (c *chunks) begin(b []byte) []byte { return append(append(b, "data: "...), c.head...) }

func (c *chunks) completionEvents(b []byte, p progress) []byte {
	b = append(c.begin(b), `{"index":0,"text":"`...)
	b = c.appendText(b, c.told, p.out)
	b = append(b, `","logprobs":null,"finish_reason":`...)
	b = c.finish(b, p)
	b = append(b, `}],"usage":`...)
	if c.ask.running {
		b = c.usage(b, p, false, true)
	} else {
		b = append(b, "null"...)
	}
	return append(b, "}\n\n"...)
}

// chatEvents: the role, the content if there is some, and at the end a chunk with nothing but the reason.
func (c *chunks) chatEvents(b []byte, p progress) []byte {
	if !c.started {
		c.started = true
		if b = append(c.begin(b), `{"index":0,"delta":`...); c.d.release == r046 {
			b = c.delta(b, `"assistant"`, -1, -1)
		} else {
			b = c.delta(b, `"assistant"`, 0, 0)
		}
		b = c.close(b, nil, nil)
	}
	last := p.done && c.d.release == r046 // the last content says the reason too, if no usage follows
	if p.out > c.told || last && !c.ask.usage {
		b = append(c.begin(b), `{"index":0,"delta":`...)
		to := p.out
		if to == c.told {
			to = -1
		}
		b = c.delta(b, "", c.told, to)
		reason, usage := (*progress)(nil), (*progress)(nil)
		if last && !c.ask.usage {
			reason = &p
		}
		if c.ask.running {
			usage = &p
		}
		b = c.close(b, reason, usage)
	}
	if !p.done {
		return b
	}
	b = append(c.begin(b), `{"index":0,"delta":`...)
	b = c.delta(b, "", 0, -1)
	if last && c.ask.usage {
		return c.close(b, &p, &p)
	}
	return c.close(b, &p, nil)
}

// delta adds a chat delta with the words from one index up to another, -1 = no content. 0.5.23 leaves out what is not there.
func (c *chunks) delta(b []byte, role string, from, to int) []byte {
	if c.d.release >= r0523 {
		b = append(b, `{"reasoning_content":null`...)
		if role != "" {
			b = append(append(b, `,"role":`...), role...)
		}
		if to >= 0 {
			b = append(c.appendText(append(b, `,"content":"`...), from, to), '"')
		}
		return append(b, '}')
	}
	if role == "" {
		role = "null"
	}
	b = append(append(append(b, `{"role":`...), role...), `,"content":`...)
	if to >= 0 {
		b = append(c.appendText(append(b, '"'), from, to), '"')
	} else {
		b = append(b, "null"...)
	}
	return append(b, `,"reasoning_content":null,"tool_calls":null}`...)
}

// close ends a chat chunk, with the reason of the end and with usage where they are due.
func (c *chunks) close(b []byte, reason, usage *progress) []byte {
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	if reason == nil {
		b = append(b, `null,"matched_stop":null`...)
	} else {
		b = c.finish(b, *reason)
	}
	b = append(b, "}]"...)
	switch {
	case usage != nil:
		b = c.usage(append(b, `,"usage":`...), *usage, c.report && (c.d.release >= r0523 || c.d.release == r046), true)
	case c.d.release < r0523:
		b = append(b, `,"usage":null`...)
	}
	return append(b, "}\n\n"...)
}

// finish adds why the answer ended, null while it goes on, and what stopped it.
func (c *chunks) finish(b []byte, p progress) []byte {
	switch {
	case !p.done:
		b = append(b, "null"...)
	case p.aborted:
		b = append(b, `"abort"`...)
	case c.natural:
		return strconv.AppendInt(append(b, `"stop","matched_stop":`...), chatEnd, 10)
	default:
		b = append(b, `"length"`...)
	}
	return append(b, `,"matched_stop":null`...)
}

// usage adds the token counts; nulls says whether empty fields are printed.
func (c *chunks) usage(b []byte, p progress, report, nulls bool) []byte {
	b = field(b, `{"prompt_tokens":`, c.prompt.Len)
	b = field(b, `,"total_tokens":`, c.prompt.Len+p.out)
	b = field(b, `,"completion_tokens":`, p.out)
	switch {
	case report:
		b = append(field(b, `,"prompt_tokens_details":{"cached_tokens":`, p.cached), '}')
	case nulls:
		b = append(b, `,"prompt_tokens_details":null`...)
	}
	if c.d.release >= r055 {
		b = append(b, `,"reasoning_tokens":0`...)
	}
	if nulls && c.d.release >= r0523 {
		b = append(b, `,"completion_tokens_details":null`...)
	}
	return append(b, '}')
}

// whole is an answer in one piece.
func (c *chunks) whole(b []byte, p progress) []byte {
	b = append(b, c.head...)
	if c.ask.chat {
		b = c.appendText(append(b, `{"index":0,"message":{"role":"assistant","content":"`...), 0, p.out)
		b = append(b, `","reasoning_content":null`...)
		if c.d.release < r0523 {
			b = append(b, `,"tool_calls":null`...)
		}
		b = append(b, '}')
	} else {
		b = c.appendText(append(b, `{"index":0,"text":"`...), 0, p.out)
		b = append(b, '"')
	}
	b = c.finish(append(b, `,"logprobs":null,"finish_reason":`...), p)
	b = c.usage(append(b, `}],"usage":`...), p, c.report, true)
	switch {
	case c.d.release >= r0523:
		b = append(field(b, `,"metadata":{"weight_version":"default","weight_versions":[{"version":"default","start":0,"end":`, p.out), "}]}"...)
	case c.d.release >= r055:
		b = append(b, `,"metadata":{"weight_version":"default"}`...)
	}
	return append(b, '}')
}
