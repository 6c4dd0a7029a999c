package trial

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"sgtune/sglang"
)

// infoTimeReal is the least real time for /server_info, which goes through the scheduler.
const infoTimeReal = 5 * time.Second

// introduce keeps what a ready server says of itself: its version in the row, the whole answer in the
// evidence, so that a server started from an exported profile can be compared with this one. A server that
// does not answer loses evidence, not its trial.
func (a *attempt) introduce(ctx context.Context) {
	ctx, cancel := a.within(ctx, healthTimeout, infoTimeReal)
	defer cancel()
	info, err := a.target.ServerInfo(ctx)
	if err != nil {
		a.find("evidence_incomplete", "/server_info did not answer: "+err.Error())
		return
	}
	if v, ok := info["version"].(string); ok {
		a.t.SGLang = v
	}
	text, err := json.MarshalIndent(a.withoutSecrets("", info), "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(a.dir(), "server_info.json"), text, 0o600)
	}
	if err != nil {
		a.find("evidence_incomplete", "/server_info could not be kept: "+err.Error())
	}
}

// withoutSecrets masks what /server_info holds, at any depth: SGLang repeats its arguments under
// internal_states. A field whose name says secret loses its value, every other text is masked by the usual rules.
func (a *attempt) withoutSecrets(name string, v any) any {
	switch v := v.(type) {
	case string:
		if v != "" && secretField(name) {
			return "***"
		}
		return a.maskArgv([]string{v})[0]
	case float64:
		if secretField(name) {
			return "***"
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, field := range v {
			out[key] = a.withoutSecrets(key, field)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = a.withoutSecrets(name, element)
			before, flag := "", false
			if i > 0 {
				before, flag = v[i-1].(string)
			}
			if word, text := element.(string); text && flag { // a command line: the flag stands before its value
				out[i] = a.maskArgv([]string{before, word})[1]
			}
		}
		return out
	}
	return v
}

// secretField reports whether a field's name says that its value is a secret.
func secretField(name string) bool {
	probe := name + "='x1'"
	return name != "" && sglang.Mask(probe) != probe
}
