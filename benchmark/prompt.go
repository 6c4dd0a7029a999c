package benchmark

import (
	"encoding/json"
	"time"
)

// Prompt is one request ready to send. Exactly one of IDs, Text and Messages is set; none when the row could
// not be read again (Row.Err), and then there is nothing to send.
type Prompt struct {
	Row          Row
	Pass         int               // how often the feed has started over before this row
	Turn         int               // position within its conversation, from 0
	IDs          []int             // token ids
	Text         string            // plain text
	Messages     []json.RawMessage // a chat: the whole history so far, the server's own answers included
	InputTokens  int               // prompt tokens wanted, 0 for a text of unknown length; of a later turn with the history before it
	OutputTokens int               // wanted, or the most there may be (Open)
	Open         bool              // the model may stop before OutputTokens
	// Follow gives the next turn of the conversation and the pause before it, once this one was answered;
	// nil after the last turn. It is called at most once, and not after a failure.
	Follow func(Answer) (next Prompt, pause time.Duration, ok bool)

	words int // how many words of ours it is made of and nothing else, 0 otherwise
}

// Answer is what the server said: its text, and its token ids where the endpoint tells them. It is kept
// only of prompts that have a Follow.
type Answer struct {
	Text string
	IDs  []int
}

// Feed hands out prompts; it never ends (a short file is passed again under a new salt) and never
// repeats a text. Safe for concurrent use.
type Feed interface {
	Next() Prompt
	Passes() int // passes begun so far
}

// Learner is a feed whose prompts become more exact with what the server counts. Every feed of this
// package is one; whoever sends its prompts calls Learn after each finished request, from any goroutine.
type Learner interface {
	Feed
	Learn(p Prompt, r Request)
}

// FeedOptions says which rows a feed hands out and what its prompts are made of.
type FeedOptions struct {
	From, To int    // rows [From, To) in file order; an empty range is all of them
	Salt     string // the same salt gives the same prompts for ever, another one has no text in common with it
	Palette  Palette
	Endpoint string // EndpointGenerate (also ""), EndpointCompletions or EndpointChat: whether ids can be sent, and come back
	Open     bool   // the model may end its answers itself, within OutputTokens; otherwise ignore_eos forces the length
	// OutputTokens asks for so many tokens in every answer, whatever the workload says; 0 = as it says.
	OutputTokens int
	// Calibration shortens prompts of words by what the server adds to them; nil leaves them as they are.
	// One may be shared by all feeds of a server.
	Calibration *Calibration
}

// NewFeed returns a feed of the rows [from, to) of w for an endpoint that takes token ids; see NewFeedWith.
func NewFeed(w *Workload, from, to int, salt string, p Palette) Feed {
	return NewFeedWith(w, FeedOptions{From: from, To: to, Salt: salt, Palette: p})
}

// NewFeedWith returns a feed of some rows of w in file order.
//
// Prompts of lengths are made from the palette: the block of hash id h is the same text wherever h
// occurs, so that prefixes are shared exactly as the file says, and nothing else is shared. The same
// salt gives the same prompts on every machine; another salt, and each further pass, gives prompts
// of the same lengths and sharing that have no text in common with these. A chat endpoint gets them as
// one user message of words.
//
// Prompts of texts and conversations are sent as they are on the first pass under the salt ""; otherwise
// eight words made from salt and pass stand before them, the same for all rows of the pass. What a chat
// template puts before the messages (tools, for one) is the same in all passes.
//
// A row that follows another (Workload.Follow) is not handed out by Next but by the Follow of the prompt
// before it; the first row of a session in the range starts it, even in the middle of the session.
func NewFeedWith(w *Workload, o FeedOptions) Feed {
	from, to := max(0, o.From), min(o.To, w.Len())
	if from >= to {
		from, to = 0, w.Len()
	}
	if len(o.Palette.IDs) == 0 && len(o.Palette.Words) == 0 {
		o.Palette = WordPalette("no palette was loaded")
	}
	return &feed{w: w, from: from, to: to, options: o, followers: followersOf(w, from, to)}
}
