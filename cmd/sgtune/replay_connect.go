package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sgtune/benchmark"
)

// connect finds out what the server is and what prompts for it are made of. Nothing reaches its generation
// endpoints.
func (r *replayRun) connect(ctx context.Context) error {
	o := r.options
	for _, note := range r.server.notes {
		r.screen.Say(note)
	}
	var err error
	if r.detected, err = benchmark.Detect(ctx, r.server.Target); err != nil {
		var why *benchmark.Unreachable
		if ctx.Err() != nil || o.endpoint == "auto" || o.requests == 0 || !errors.As(err, &why) || why.Why != benchmark.WhyRefused {
			return err
		}
		// The command line says everything that is needed: whoever counts requests gets them counted.
		r.screen.Say(fmt.Sprintf("the server does not answer (%s); the requests are sent all the same", err))
	}
	r.chooseEndpoint()
	if r.model = o.model; r.model == "" {
		r.model = r.detected.Model
	}
	if r.palette, err = r.loadPalette(ctx); err != nil {
		return err
	}
	r.salt = o.salt
	if r.salt == "" && r.kinds.lengths {
		r.salt = newSalt()
	}
	r.calibration = &benchmark.Calibration{}
	r.feed = r.newFeed(r.salt)
	r.screen.Say(r.serverText())
	return nil
}

// rowKinds is what the rows of a workload bring.
type rowKinds struct {
	lengths  bool     // prompts are made
	texts    bool     // prompts are sent as they are
	chats    bool     // those are messages
	sessions bool     // some rows go on where another one ended
	paths    []string // endpoints the file names

	typical benchmark.Row // the first conversation, else the first row
}

// kindsOf looks at the first rows: files are of one kind, but for those whose format allows several.
func kindsOf(w *benchmark.Workload) rowKinds {
	const enough = 1000
	var k rowKinds
	for i := range min(w.Len(), enough) {
		row := w.Row(i)
		if i == 0 || !k.chats && len(row.Turns) > 0 {
			k.typical = row
		}
		k.sessions = k.sessions || row.Follows
		if row.Path != "" && !slices.Contains(k.paths, row.Path) {
			k.paths = append(k.paths, row.Path)
		}
		k.chats = k.chats || len(row.Turns) > 0
		k.texts = k.texts || len(row.Turns) > 0 || row.Text != ""
		k.lengths = k.lengths || len(row.Turns) == 0 && row.Text == ""
	}
	return k
}

// elsewhere says which endpoints the file names for some rows that go to the run's one endpoint all the same.
func (k rowKinds) elsewhere(path string) string {
	others := slices.DeleteFunc(slices.Clone(k.paths), func(p string) bool { return p == path })
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("the file names %s for some rows; every request goes to %s", strings.Join(others, " and "), path)
}

// newSalt makes prompts that no server has seen.
func newSalt() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// chooseEndpoint takes the endpoint that was named, else the one that suits rows and server.
func (r *replayRun) chooseEndpoint() {
	if r.endpoint = r.options.endpoint; r.endpoint != "auto" {
		return
	}
	endpoint, err := r.detected.Endpoint(r.kinds.typical)
	if err != nil { // most servers speak as OpenAI does
		if endpoint = benchmark.EndpointCompletions; r.kinds.chats {
			endpoint = benchmark.EndpointChat
		}
		r.detected.Notes = append(r.detected.Notes, "the server says nothing of itself and is taken for one like OpenAI's; --endpoint generate, completions or chat says otherwise")
	}
	r.endpoint = endpoint
}

// loadPalette asks the server which words are one token; one that cannot tell is sent words, and the
// lengths are approximate.
func (r *replayRun) loadPalette(ctx context.Context) (benchmark.Palette, error) {
	if !r.kinds.lengths {
		return benchmark.Palette{}, nil // nothing is made of it
	}
	palette, err := benchmark.LoadPalette(ctx, r.server.Target)
	if err == nil {
		return palette, nil
	}
	if ctx.Err() != nil {
		return palette, context.Cause(ctx)
	}
	return benchmark.WordPalette("the server does not tell its tokens (" + r.mask(err.Error()) + ")"), nil
}

// product is what the server calls itself.
func (r *replayRun) product() string {
	return strings.TrimSpace(r.detected.Product + " " + r.detected.Version)
}
