package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sgtune/host"
)

// runtimeTime bounds one call of a container runtime (real time).
const runtimeTime = 2 * time.Minute

// wordsLabel holds a digest of the command line that a container was made by.
const wordsLabel = "sgtune.words"

// containerSteward leaves the server to its container's runtime and a restart policy.
type containerSteward struct{ *finish }

func (c *containerSteward) name() string { return host.ServiceName(c.study.Name) }

func (c *containerSteward) digest() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(c.argv, "\x00"))))[:16]
}

// begin makes the container; one that was stopped is removed first, its name is needed.
func (c *containerSteward) begin(ctx context.Context) (host.Resident, error) {
	r, there, err := c.look(ctx)
	if err != nil || there {
		return r, err
	}
	_ = c.runtime(ctx, []string{c.study.Server.Container.Runtime, "rm", c.name()}, nil) // fails when there is none
	words, env := hostContainer(c.study.Server.Container).ServiceWords(c.study.Name, c.argv, c.env)
	words = slices.Insert(words, slices.Index(words, "-d")+1, "--label", wordsLabel+"="+c.digest())
	if err := c.runtime(ctx, words, env); err != nil {
		return r, fmt.Errorf("start container %s: %w", c.name(), err)
	}
	r, there, err = c.look(ctx)
	if err == nil && !there {
		err = fmt.Errorf("container %s ended at once; look with: %s", c.name(), c.logs())
	}
	return r, err
}

// look asks the runtime. A container that somebody stopped is not there; one that waits to be started again is.
func (c *containerSteward) look(ctx context.Context) (host.Resident, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, runtimeTime)
	defer cancel()
	ask := c.place.ask()
	list, err := ask(ctx, []string{c.study.Server.Container.Runtime, "ps", "-a", "-q", "--filter", "name=^" + c.name() + "$"}, nil)
	if err != nil {
		return host.Resident{}, false, fmt.Errorf("ask %s for its containers: %w", c.study.Server.Container.Runtime, err)
	}
	if strings.TrimSpace(list) == "" {
		return host.Resident{}, false, nil
	}
	text, err := ask(ctx, []string{c.study.Server.Container.Runtime, "inspect", c.name()}, nil)
	if err != nil {
		return host.Resident{}, false, fmt.Errorf("ask %s for container %s: %w", c.study.Server.Container.Runtime, c.name(), err)
	}
	return c.resident(text)
}

func (c *containerSteward) resident(inspected string) (host.Resident, bool, error) {
	s, err := readServed(inspected)
	if err != nil {
		return host.Resident{}, false, fmt.Errorf("ask %s for container %s: %w", c.study.Server.Container.Runtime, c.name(), err)
	}
	r := s.resident(c.study.Server.Container.Runtime, c.name())
	r.Name, r.Port = c.study.Name, c.port
	if s.Config.Labels[wordsLabel] == c.digest() {
		r.Argv = c.argv
	}
	return r, s.there(), nil
}

func (c *containerSteward) end(ctx context.Context) error {
	runtime := c.study.Server.Container.Runtime
	return errors.Join(c.runtime(ctx, []string{runtime, "stop", c.name()}, nil), c.runtime(ctx, []string{runtime, "rm", "-f", c.name()}, nil))
}

func (c *containerSteward) logs() string {
	return c.place.machine(c.study)(c.study.Server.Container.Runtime + " logs " + c.name())
}

func (c *containerSteward) words(host.Resident) (who, log string) {
	return fmt.Sprintf("%s's container %s is started again when it dies (--restart unless-stopped)", filepath.Base(c.study.Server.Container.Runtime), c.name()), c.logs()
}

// runtime runs a command of the runtime on the host; what it says when it fails is the error.
func (c *containerSteward) runtime(ctx context.Context, argv []string, env map[string]string) error {
	exit, said, err := host.Run(ctx, c.place.host, host.Command{Argv: argv, Env: env, LogPath: filepath.Join(c.place.files, "finish.log")}, runtimeTime)
	if err == nil && (exit.Code != 0 || exit.Signal != 0) {
		err = fmt.Errorf("%s %s: exit status %d: %s", argv[0], argv[1], exit.Code, maskText(lastLine(said), c.place.secrets))
	}
	return err
}
