package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"time"

	"sgtune/tuner"
)

// notifyTimeout bounds one notification (real time).
const notifyTimeout = 30 * time.Second

// notify delivers one notification where sgtune runs: a program gets the message as JSON on its
// standard input, a URL gets it as a POST.
func notify(ctx context.Context, to tuner.Notify, m tuner.Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write the notification: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	if len(to.Run) > 0 {
		cmd := exec.CommandContext(ctx, to.Run[0], to.Run[1:]...)
		cmd.Stdin = bytes.NewReader(body)
		cmd.WaitDelay = time.Second // what it leaves running keeps its output open: that is not waited for
		if out, err := cmd.CombinedOutput(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			return fmt.Errorf("notify with %s: %w: %s", to.Run[0], err, bytes.TrimSpace(out[:min(len(out), 200)]))
		}
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("notify: the server answered %s", resp.Status)
	}
	return nil
}
