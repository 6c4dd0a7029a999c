package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"sgtune/sglang"
	"sgtune/tuner"
)

// notifier delivers notifications where sgtune runs, a few times when it fails, in bounded time.
type notifier struct {
	secrets []string        // exact values that no message may hold
	limit   time.Duration   // of one delivery with all its tries, real time
	try     time.Duration   // of one try
	pauses  []time.Duration // before each further try
	client  *http.Client
}

func newNotifier(secrets []string) *notifier {
	return &notifier{
		secrets: secrets, limit: time.Minute, try: 20 * time.Second, pauses: []time.Duration{time.Second, 4 * time.Second},
		// A page that a redirect leads to answers 200 and has told nobody.
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// errFinal marks a failure that another try would only repeat.
var errFinal = errors.New("not tried again")

// send delivers one message: a program gets it as JSON on its standard input and in words in its environment, a
// URL as a POST.
func (n *notifier) send(ctx context.Context, to tuner.Notify, m tuner.Message) error {
	body, text, err := n.render(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.limit)
	defer cancel()
	deliver := func(ctx context.Context) error { return n.post(ctx, to.URL, body) }
	if len(to.Run) > 0 {
		deliver = func(ctx context.Context) error { return n.run(ctx, to.Run, m, body, text) }
	}
	for i := 0; ; i++ {
		err := n.once(ctx, deliver)
		if err == nil || errors.Is(err, errFinal) || i >= len(n.pauses) || !wait(ctx, n.pauses[i]) {
			return n.told(to, i+1, err)
		}
	}
}

func (n *notifier) once(ctx context.Context, deliver func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, n.try)
	defer cancel()
	return deliver(ctx)
}

// told is the error of a delivery, without what it must not show.
func (n *notifier) told(to tuner.Notify, tries int, err error) error {
	if err == nil {
		return nil
	}
	name := to.Name()
	if len(to.Run) > 0 {
		name = to.Run[0]
	}
	text := strings.TrimSuffix(err.Error(), ": "+errFinal.Error())
	return fmt.Errorf("notify %s: %s (%s)", name, maskText(text, n.secrets), tried(tries))
}

func tried(n int) string {
	if n == 1 {
		return "tried once"
	}
	return fmt.Sprintf("tried %d times", n)
}

// wait pauses d and reports whether there is still time.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// render is a message as JSON and in words, secrets masked wherever they stand.
func (n *notifier) render(m tuner.Message) (body []byte, text string, err error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, "", fmt.Errorf("write the notification: %w", err)
	}
	var whole any
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, "", fmt.Errorf("write the notification: %w", err)
	}
	if body, err = json.Marshal(n.masked("", whole)); err != nil {
		return nil, "", fmt.Errorf("write the notification: %w", err)
	}
	return body, maskText(m.Text, n.secrets), nil
}

// masked is a JSON value without secrets: a field whose name says that it is one loses its value.
func (n *notifier) masked(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			v[key] = n.masked(key, field)
		}
	case []any:
		for i, field := range v {
			v[i] = n.masked(name, field)
		}
	case string:
		if v != "" && secretName(name) {
			return "***"
		}
		return maskText(v, n.secrets)
	case float64: // a key may be all digits
		if secretName(name) {
			return "***"
		}
	}
	return v
}

// secretName reports whether a knob's name says that its value is a secret.
func secretName(name string) bool {
	variable, isVariable := strings.CutPrefix(name, sglang.EnvPrefix)
	return isVariable && secretVariable(variable) || !isVariable && name != "" && secretFlag("--"+name)
}

// run starts a program in a group of its own, so that Ctrl-C is for sgtune alone and a program that takes too
// long is ended with what it started.
func (n *notifier) run(ctx context.Context, argv []string, m tuner.Message, body []byte, text string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader(body)
	cmd.Env = append(os.Environ(), "SGTUNE_TEXT="+text, "SGTUNE_KIND="+string(m.Kind), "SGTUNE_STUDY="+m.Study)
	cmd.WaitDelay = time.Second // what it leaves running keeps its output open: that is not waited for
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil
	case ctx.Err() != nil:
		return errors.New("it took too long and was ended")
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: %w", err, errFinal)
	}
	said := strings.Join(strings.Fields(string(out[:min(len(out), 200)])), " ")
	return fmt.Errorf("%w: %s", err, said)
}

// Headers by which ntfy (2.10 and later) makes a readable message of the JSON; nobody else looks at them.
var ntfyHeaders = map[string]string{"X-Template": "yes", "X-Title": "sgtune {{.study}}: {{.kind}}", "X-Message": "{{.text}}"}

func (n *notifier) post(ctx context.Context, to string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the address is not understood: %w", errFinal) // err quotes it
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sgtune/"+version())
	for name, value := range ntfyHeaders {
		req.Header.Set(name, value)
	}
	resp, err := n.client.Do(req)
	var whole *url.Error
	switch {
	case ctx.Err() != nil:
		return errors.New("no answer in time")
	case errors.As(err, &whole): // its text has the address
		return whole.Err
	case err != nil:
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // only shown
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode < 400:
		return fmt.Errorf("the server answered %s: write the address it moved to: %w", resp.Status, errFinal)
	case resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusRequestTimeout:
		return fmt.Errorf("the server answered %s: %s: %w", resp.Status, strings.Join(strings.Fields(string(said)), " "), errFinal)
	}
	return fmt.Errorf("the server answered %s", resp.Status)
}
