package trial

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
)

// Limits of the proof, in host time and at least in real time.
const (
	goneTime       = 2 * time.Minute
	goneTimeReal   = 10 * time.Second
	memoryTime     = time.Minute // GPU memory comes back seconds after the process is gone
	memoryTimeReal = 3 * time.Second
	portTime       = 30 * time.Second
	portTimeReal   = 2 * time.Second
	cleanPoll      = time.Second
	cleanPollReal  = 50 * time.Millisecond
)

// Causes of dirty_host.
const (
	causeProcessLeft = "process_left"
	causeMemoryHeld  = "memory_held"
	causePortHeld    = "port_held"
)

// released is the outcome of the proof that a host is clean.
type released struct {
	Release Release
	Cause   string // of dirty_host, "" when clean
	Text    string // who holds what, or why it could not be verified
	left    error  // a person gave up waiting for the host: nothing is known, and nothing was proven
}

// premises is what clean means after one launch.
type premises struct {
	host     host.Host
	clock    benchmark.Clock
	marker   string
	launched bool
	port     int     // 0 = nothing to check
	before   []int64 // GPU memory in use before the launch, nil = not known
}

// prove kills what still carries the marker and then waits until nothing of the launch is left: no
// process, GPU memory back for two reads, port free, shared memory and sockets removed. Each is checked whatever the others say.
func (p premises) prove(ctx context.Context) released {
	if p.marker == "" { // nothing was ever going to be started
		return released{Release: ReleaseVerified}
	}
	var dirt []released
	_, err := Reclaim(ctx, p.host, p.clock, p.marker)
	if errors.Is(err, host.ErrGivenUp) {
		return released{left: err}
	}
	if note := goneNode(err); note != "" {
		return released{Release: ReleaseUnverified, Text: note}
	}
	if err != nil {
		dirt = append(dirt, released{Cause: causeProcessLeft, Text: err.Error()})
	}
	if !p.launched {
		return sum(dirt, "")
	}
	note, held := p.memory(ctx)
	if held != "" {
		dirt = append(dirt, released{Cause: causeMemoryHeld, Text: held})
	}
	if text := p.portFree(ctx); text != "" {
		dirt = append(dirt, released{Cause: causePortHeld, Text: text})
	}
	if text := p.filesGone(ctx); text != "" {
		dirt = append(dirt, released{Cause: causeMemoryHeld, Text: text})
	}
	return sum(dirt, note)
}

func sum(dirt []released, note string) released {
	if len(dirt) == 0 {
		if note != "" {
			return released{Release: ReleaseUnverified, Text: note}
		}
		return released{Release: ReleaseVerified}
	}
	texts := make([]string, len(dirt))
	for i, d := range dirt {
		texts[i] = d.Text
	}
	return released{Release: ReleaseDirty, Cause: dirt[0].Cause, Text: strings.Join(texts, "; ")}
}

// Reclaim kills every process of h that carries marker (any marker when it is empty) and waits until
// none is left. It returns the identities of those it found; an error names what would not end.
func Reclaim(ctx context.Context, h host.Host, clock benchmark.Clock, marker string) (ended []host.ID, err error) {
	limit := clock.Now().Add(floor(clock, goneTime, goneTimeReal))
	known := map[int]bool{}
	for {
		list, err := h.Find(ctx, marker)
		if err != nil {
			return ended, fmt.Errorf("look for processes marked %s=%s: %w", host.MarkerEnv, marker, err)
		}
		if len(list) == 0 {
			return ended, nil
		}
		var refused error
		for _, p := range list {
			if id := p.ID(); !known[id.PID] {
				known[id.PID] = true
				ended = append(ended, id)
			}
			short, cancel := context.WithTimeout(ctx, time.Second)
			refused = errors.Join(refused, p.Stop(short, 0))
			cancel()
		}
		if clock.Now().After(limit) {
			return ended, fmt.Errorf("still alive after SIGKILL: %s (%s=%s): %w", names(list), host.MarkerEnv, marker, refused)
		}
		if err := clock.Sleep(ctx, floor(clock, 0, cleanPollReal)); err != nil {
			return ended, fmt.Errorf("still alive: %s: %w", names(list), err)
		}
	}
}

func names(list []host.Process) string {
	words := make([]string, len(list))
	for i, p := range list {
		if words[i] = "pid " + strconv.Itoa(p.ID().PID); p.ID().Container != "" {
			words[i] = "container " + p.ID().Container
		}
	}
	return strings.Join(words, ", ")
}

// memory waits for the GPUs to be as they were. note says why that could not be verified, held who
// holds what.
func (p premises) memory(ctx context.Context) (note, held string) {
	limit := p.clock.Now().Add(floor(p.clock, memoryTime, memoryTimeReal))
	for check := (host.FreedCheck{Before: p.before}); ; {
		u, err := p.host.Usage(ctx)
		switch {
		case goneNode(err) != "":
			return goneNode(err), ""
		case err != nil:
			note = "not verified: " + err.Error()
		case len(u.GPUs) == 0:
			return "not verified: " + u.GPUNote, ""
		case len(p.before) != len(u.GPUs):
			return "not verified: GPU memory before the launch is not known", ""
		default:
			note = ""
		}
		freed, _ := check.Read(u.GPUs)
		if held = p.held(u); freed {
			return "", ""
		}
		if p.clock.Now().After(limit) {
			return note, held
		}
		if err := p.clock.Sleep(ctx, floor(p.clock, cleanPoll, cleanPollReal)); err != nil {
			return note, held
		}
	}
}

// held says which GPUs hold more than before, and by whom as the driver lists it. GPUs with the same
// holders are told together: a dead server of eight ranks is one sentence.
func (p premises) held(u host.Usage) string {
	type group struct {
		gpus      []string
		most, was int64
	}
	groups := map[string]*group{}
	var order []string
	for _, g := range host.StillHeld(p.before, u.GPUs) {
		who := g.Holders()
		if groups[who] == nil {
			groups[who] = &group{}
			order = append(order, who)
		}
		s := groups[who]
		s.gpus = append(s.gpus, strconv.Itoa(g.Index))
		s.most, s.was = max(s.most, g.Used), max(s.was, g.Before)
	}
	texts := make([]string, len(order))
	for i, who := range order {
		s := groups[who]
		word, verb := "GPU", "still holds"
		if len(s.gpus) > 1 {
			word, verb = "GPUs", "still hold up to"
		}
		texts[i] = fmt.Sprintf("%s %s %s %s (%s before the launch), %s", word, strings.Join(s.gpus, " "), verb, gib(s.most), gib(s.was), who)
	}
	return strings.Join(texts, "; ")
}

// portFree waits until nobody listens on the port.
func (p premises) portFree(ctx context.Context) string {
	if p.port == 0 {
		return ""
	}
	limit := p.clock.Now().Add(floor(p.clock, portTime, portTimeReal))
	for {
		end, err := p.host.Reach(ctx, p.port)
		if goneNode(err) != "" { // the memory's reading told of it
			return ""
		}
		if err != nil {
			return fmt.Sprintf("port %d could not be checked: %v", p.port, err)
		}
		if !end.Listening {
			return ""
		}
		if p.clock.Now().After(limit) || p.clock.Sleep(ctx, floor(p.clock, cleanPoll, cleanPollReal)) != nil {
			return fmt.Sprintf("port %d is still held by %s", p.port, holders(end.Owners))
		}
	}
}

func gib(bytes int64) string { return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30)) }
