package trial

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
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
	text, err := json.MarshalIndent(a.withoutSecrets(info), "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(a.dir(), "server_info.json"), text, 0o600)
	}
	if err != nil {
		a.find("evidence_incomplete", "/server_info could not be kept: "+err.Error())
	}
}

// withoutSecrets masks api keys by their field's name and every other text by the usual rules.
func (a *attempt) withoutSecrets(info map[string]any) map[string]any {
	out := maps.Clone(info)
	for name, v := range out {
		text, ok := v.(string)
		if !ok || text == "" {
			continue
		}
		if strings.Contains(name, "api_key") || strings.Contains(name, "password") {
			out[name] = "***"
			continue
		}
		for _, secret := range a.Secrets {
			text = strings.ReplaceAll(text, secret, "***")
		}
		out[name] = sglang.Mask(text)
	}
	return out
}
