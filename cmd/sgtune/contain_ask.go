package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os/exec"
	"strings"

	"sgtune/host"
	"sgtune/sglang"
	"sgtune/tuner"
)

// askInside asks a program inside the study's container image: each question has a container of its own, which is gone
// afterwards. Without a container the question is asked as it is.
func askInside(c *sglang.Container, ask asker) asker {
	if c == nil {
		return ask
	}
	return func(ctx context.Context, argv []string, env map[string]string) (string, error) {
		name := "sgtune-ask-" + strings.ToLower(rand.Text()[:12])
		words, vars := hostContainer(c).AskWords(name, argv, env)
		output, err := ask(ctx, words, vars)
		if ctx.Err() != nil { // the runtime's program was killed, which ends no container
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), askEnd)
			defer cancel()
			_, _ = ask(last, []string{c.Runtime, "rm", "-f", name}, nil) // it may be gone by itself
		}
		return output, err
	}
}

func hostContainer(c *sglang.Container) host.Container {
	return host.Container{Runtime: c.Runtime, Image: c.Image, Args: c.Args}
}

// containable says why no container of the study could be made where its server will run: the runtime does not answer
// there, or has no such image.
func containable(ctx context.Context, ask asker, s *tuner.Study) error {
	c, where := s.Server.Container, "here"
	if s.Host.Kind == tuner.HostSSH {
		where = "on " + s.Host.Address
	}
	if s.Host.Kind != tuner.HostSSH {
		if _, err := exec.LookPath(c.Runtime); err != nil {
			return fmt.Errorf("server.container needs %s, which cannot be run %s (%w)", c.Runtime, where, plainExec(err))
		}
	}
	if _, err := ask(ctx, []string{c.Runtime, "ps"}, nil); err != nil {
		return fmt.Errorf("server.container needs %s, which does not answer %s (%w); try \"%s ps\" there", c.Runtime, where, err, c.Runtime)
	}
	if _, err := ask(ctx, []string{c.Runtime, "image", "inspect", c.Image}, nil); err != nil {
		return fmt.Errorf("the image %s is not %s, and no trial fetches it; run \"%s pull %s\" there", c.Image, where, c.Runtime, c.Image)
	}
	return nil
}
