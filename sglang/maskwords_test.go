package sglang

import (
	"fmt"
	"strings"
	"testing"
)

func TestWordsAreMasked(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"launch_server.py: error: unrecognized arguments: --admin-api-key s3cr3t-value",
		"sglang serve: error: unrecognized arguments: --hub-token=s3cr3t-value --port 1",
		"HFValidationError: Repo id must be alphanumeric: 'https://user:s3cr3t-value@hub/x'",
		"KeyError: HF_TOKEN=s3cr3t-value",
		"ValueError: api_key='s3cr3t-value'",
	} {
		ev, ok := ParseLine(line)
		if !ok {
			reader := NewReader()
			events := reader.Feed([]byte("Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n" + line + "\n"))
			if len(events) == 0 {
				t.Errorf("no event: %s", line)
				continue
			}
			ev = events[len(events)-1]
		}
		if all := fmt.Sprintf("%+v", ev); strings.Contains(all, "s3cr3t") {
			t.Errorf("%s\ngives %s", line, all)
		}
	}
}
