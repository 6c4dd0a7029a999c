package benchmark

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// A session is what one user says to the server, each time with the server's answers so far: the turns of
// a row, then those of the rows that follow it. The history is kept in the form it was sent in, since only
// a prompt that begins with exactly what the server has computed hits its cache:
//
//	ids       the ids sent, the ids the server answered, new ids
//	text      the text sent, the text the server answered, new words
//	messages  the messages sent, an assistant message with the answer, new messages
type history struct {
	ids      []int
	text     string
	messages []json.RawMessage
}

// turn is one request of a session.
type turn struct {
	feed   *feed
	at     int // index of its row
	row    Row
	pass   int
	seed   uint64
	step   int // which of the row's turns
	number int // in the session, from 0

	said   history
	wanted int // prompt tokens, 0 = unknown
	words  int // Prompt.words
}

// start is the first turn of the session that begins with row i. A row that cannot be read again
// (Row.Err) gives a prompt of nothing.
func (f *feed) start(i, pass int) *turn {
	t := &turn{feed: f, at: i, row: f.w.Row(i), pass: pass, seed: passSeed(f.options.Salt, pass)}
	salted := pass > 0 || f.options.Salt != ""
	switch {
	case t.row.Err != nil:
	case len(t.row.Turns) > 0:
		t.said.messages = t.row.Turns[0].Messages
		if salted {
			t.said.messages = withHead(t.said.messages, headWords(t.seed))
		}
	case t.row.Text != "":
		text := t.row.Text
		if salted {
			text = headWords(t.seed) + "\n" + text
		}
		t.said = f.textOrChat(text)
	case f.takesIDs(t.more()):
		t.wanted = t.row.InputTokens
		t.said.ids = make([]int, t.row.InputTokens)
		f.ids(t.said.ids, t.row, t.seed)
	default:
		t.wanted = t.row.InputTokens
		t.words = f.options.Calibration.shorten(t.row.InputTokens)
		t.said = f.textOrChat(f.words(t.row, t.words, t.seed))
	}
	return t
}

// textOrChat is a text in the form the endpoint takes.
func (f *feed) textOrChat(text string) history {
	if f.options.Endpoint == EndpointChat {
		return history{messages: []json.RawMessage{chatMessage("user", text)}}
	}
	return history{text: text}
}

// more reports whether another turn follows.
func (t *turn) more() bool {
	if t.step+1 < len(t.row.Turns) {
		return true
	}
	_, ok := t.feed.next(t.at)
	return ok
}

// output is the wanted length of the answer. Whether the model may end it before is the feed's matter, not the
// row's: where a file names no length (Row.Open), every trial of a study still does the same work.
func (t *turn) output() int {
	switch o := t.feed.options; {
	case o.OutputTokens > 0:
		return o.OutputTokens
	case len(t.row.Turns) > 0:
		return t.row.Turns[t.step].OutputTokens
	}
	return t.row.OutputTokens
}

// prompt is the turn as a request.
func (t *turn) prompt() Prompt {
	p := Prompt{
		Row: t.row, Pass: t.pass, Turn: t.number,
		IDs: t.said.ids, Text: t.said.text, Messages: t.said.messages,
		InputTokens: t.wanted, words: t.words,
	}
	p.OutputTokens, p.Open = t.output(), t.feed.options.Open
	if t.more() {
		p.Follow = t.follow
	}
	return p
}

// follow implements Prompt.Follow. A session of token ids cannot go on when the server tells neither the
// ids of its answer nor, by /tokenize, which words the ids sent so far are.
func (t *turn) follow(a Answer) (next Prompt, pause time.Duration, ok bool) {
	n := &turn{feed: t.feed, at: t.at, row: t.row, pass: t.pass, seed: t.seed, step: t.step + 1, number: t.number + 1}
	if n.step >= len(t.row.Turns) {
		j, found := t.feed.next(t.at)
		if !found {
			return Prompt{}, 0, false
		}
		n.at, n.step, n.row = j, 0, t.feed.w.Row(j)
		if pause = n.row.Pause; n.row.Err != nil {
			return n.prompt(), pause, true
		}
	}
	said := t.said
	if said.ids != nil && (n.row.InputTokens == 0 || len(a.IDs) == 0 && a.Text != "") {
		if said.text, ok = t.feed.spell(said.ids); !ok {
			return Prompt{}, 0, false
		}
		said.ids = nil
	}
	if said.messages == nil && len(n.row.Turns) > 0 {
		said = history{messages: []json.RawMessage{chatMessage("user", said.text)}}
	}
	n.said = n.append(said, a)
	if before := t.heard(a); before > 0 && n.row.InputTokens > 0 {
		n.wanted = before + n.row.InputTokens
	}
	return n.prompt(), pause, true
}

// heard is how many tokens the session has with an answer. Where no ids tell the answer's length it is the
// one that was asked for, if the model had to keep it; 0 = unknown.
func (t *turn) heard(a Answer) int {
	tokens, open := t.output(), t.feed.options.Open
	switch {
	case t.wanted == 0:
		return 0
	case len(a.IDs) > 0:
		return t.wanted + len(a.IDs)
	case open:
		return 0
	}
	return t.wanted + tokens
}

// append adds an answer, and what this turn says, to what was said before.
func (t *turn) append(said history, a Answer) history {
	f, row := t.feed, t.row
	switch {
	case said.ids != nil:
		ids := slices.Concat(said.ids, a.IDs, make([]int, row.InputTokens))
		f.ids(ids[len(ids)-row.InputTokens:], row, t.seed)
		return history{ids: ids}
	case said.messages == nil && row.Text != "":
		return history{text: said.text + a.Text + "\n" + row.Text}
	case said.messages == nil:
		return history{text: said.text + a.Text + f.words(row, row.InputTokens, t.seed)}
	}
	fresh := []json.RawMessage{}
	switch {
	case len(row.Turns) > 0:
		fresh = row.Turns[t.step].Messages
	case row.Text != "":
		fresh = append(fresh, chatMessage("user", row.Text))
	default:
		fresh = append(fresh, chatMessage("user", f.words(row, row.InputTokens, t.seed)))
	}
	return history{messages: slices.Concat(said.messages, []json.RawMessage{chatMessage("assistant", a.Text)}, fresh)}
}

// spell writes ids of the palette as the words they are, each with a space before it.
func (f *feed) spell(ids []int) (text string, ok bool) {
	p := f.options.Palette
	word := make(map[int]string, len(p.Words))
	for i, w := range p.Words[:min(len(p.Words), len(p.IDs))] {
		word[p.IDs[i]] = w
	}
	var b strings.Builder
	for _, id := range ids {
		w, known := word[id]
		if !known {
			return "", false
		}
		b.WriteByte(' ')
		b.WriteString(w)
	}
	return b.String(), true
}
