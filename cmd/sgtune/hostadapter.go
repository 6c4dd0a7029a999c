package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

// loopHost is what the loop needs of a host (tuner.Host), over a place.
type loopHost struct {
	place  *place
	study  *tuner.Study
	record *tuner.Record
	server sglang.Server
	saver  trial.Saver
}

// Recover implements tuner.Host.
func (h *loopHost) Recover(ctx context.Context, running []*trial.Trial) error {
	_, err := trial.Recover(ctx, h.place.host, h.place.clock, h.study.Name, running, h.saver)
	return err
}

// Facts implements tuner.Host.
func (h *loopHost) Facts(ctx context.Context) (tuner.HostFacts, error) {
	return h.place.facts(ctx, h.study, h.record.AfterDone)
}

// Run implements tuner.Host.
func (h *loopHost) Run(ctx context.Context, argv []string) error { return h.place.run(ctx, argv) }

// defaultPort is where SGLang listens when nobody says otherwise.
const defaultPort = 30000

// Launch implements tuner.Host: the server that stays after the study carries no trial marker.
func (h *loopHost) Launch(ctx context.Context, c sglang.Config) (string, error) {
	argv := h.server.Argv(c)
	port := h.study.Port
	if port == 0 {
		port = defaultPort
	} else {
		argv = append(argv, "--port", fmt.Sprint(port))
	}
	if end, err := h.place.host.Reach(ctx, port); err != nil {
		return "", err
	} else if end.Listening { // its answers would be taken for those of the server started here
		return "", fmt.Errorf("port %d is held by another process (pid %v), nothing was started", port, end.Owners)
	}
	log := filepath.Join(h.place.files, "finish.log")
	p, err := h.place.host.Start(ctx, host.Command{Argv: argv, Env: h.server.Environ(c), LogPath: log})
	if err != nil {
		return "", err
	}
	shown := maskText(strings.Join(argv, " "), h.place.secrets)
	err = h.awaitHealth(ctx, p, port)
	hidden := hideSecrets(log, 0, h.place.secrets) // it writes there directly, because it outlives us
	switch {
	case err != nil:
		return "", fmt.Errorf("pid %d: %s: %w; its log is %s", p.ID().PID, shown, err, log)
	case hidden != nil:
		return "", fmt.Errorf("pid %d: %s: it runs, but %w", p.ID().PID, shown, hidden)
	}
	return fmt.Sprintf("pid %d: %s", p.ID().PID, shown), nil
}

func (h *loopHost) awaitHealth(ctx context.Context, p host.Process, port int) error {
	end, err := h.place.host.Reach(ctx, port)
	if err != nil {
		return err
	}
	target := benchmark.Target{URL: end.URL, Dial: end.Dial}
	limit := h.place.clock.After(h.study.ReadyTimeout)
	for {
		probe, cancel := context.WithTimeout(ctx, 30*time.Second)
		status, err := target.HealthAt(probe, sglang.HealthGenerate) // before 0.5.2 /health answers 200 while the weights load
		cancel()
		if err == nil && status == 200 {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%w: it ended with status %d", errNotUp, p.Exit().Code)
		case <-limit:
			return fmt.Errorf("%w within %s; it is still starting", errNotUp, short(h.study.ReadyTimeout))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
