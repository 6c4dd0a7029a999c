package simulator

// generateShape is what a /generate result repeats, version by version.
type generateShape struct {
	ids       bool // output_ids are there
	deltaIDs  bool // they are those since the last event
	deltaText bool // so is the text
	text      bool // text is spelled for a prompt of ids too
}

// generateShape reads as the tokenizer manager of each version does: up to 0.4.9 a server with a tokenizer sends text
// only, 0.5.5 streams whole text beside new ids, later ones whole or, with --incremental-streaming-output, new of both.
func (d *dialect) generateShape(incremental, stream bool) generateShape {
	switch {
	case d.release <= r049:
		return generateShape{text: true}
	case d.release == r055:
		return generateShape{text: true, ids: true, deltaIDs: stream}
	}
	return generateShape{ids: true, deltaIDs: incremental, deltaText: incremental}
}

// generateEvents spells the results of one /generate request.
type generateEvents struct {
	answer
	rid   string
	shape generateShape
	words bool // the prompt was a text: the answer is spelled. Later versions would for ids too; that is left out, it is most of the bytes
	told  int
}

// event is one event of a stream.
func (e *generateEvents) event(b []byte, p progress) []byte {
	return append(e.result(append(b, "data: "...), p), "\n\n"...)
}

// result is one result: the answer so far, or what is new of it.
func (e *generateEvents) result(b []byte, p progress) []byte {
	from := func(delta bool) int {
		if delta {
			return e.told
		}
		return 0
	}
	b = append(b, `{"text":"`...)
	if e.words || e.shape.text {
		b = e.appendText(b, from(e.shape.deltaText), p.out)
	}
	b = append(b, '"')
	if e.shape.ids {
		b = append(b, `,"output_ids":[`...)
		b = append(e.appendIDs(b, from(e.shape.deltaIDs), p.out), ']')
	}
	e.told = p.out
	b = append(b, `,"meta_info":{"id":`...)
	b = appendQuoted(b, e.rid)
	b = append(b, `,"finish_reason":`...)
	switch {
	case !p.done:
		b = append(b, "null"...)
	case p.aborted:
		b = append(b, `{"type":"abort","message":"Abort in waiting queue or running batch","status_code":null,"err_type":null}`...)
	default:
		b = field(b, `{"type":"length","length":`, p.out)
		b = append(b, '}')
	}
	b = field(b, `,"prompt_tokens":`, e.prompt.Len)
	b = append(b, `,"weight_version":"default"`...)
	b = field(b, `,"num_retractions":`, p.retracted)
	b = field(b, `,"completion_tokens":`, p.out)
	b = field(b, `,"cached_tokens":`, p.cached)
	return append(b, "}}"...)
}
