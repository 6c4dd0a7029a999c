package trial

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestServerInfoWithoutSecrets(t *testing.T) {
	t.Parallel()
	const answer = `{"api_key": "s3cr3t-1", "admin_api_key": 3303131313, "model_path": "/m", "tp_size": 8, "max_total_num_tokens": 116171,
		"launch_command": "python3 -m sglang.launch_server --api-key s3cr3t-2 --tp-size 8", "served_model_name": "of opensesame",
		"argv": ["serve", "--api-key", "s3cr3t-3", "--tp-size", "8"], "keys": {"hf_token": ["s3cr3t-4"]},
		"internal_states": [{"api_key": "s3cr3t-5", "memory_usage": {"kvcache": 10.42}, "chat_template": null, "url": "http://u:s3cr3t-6@h/"}]}`
	var info map[string]any
	if err := json.Unmarshal([]byte(answer), &info); err != nil {
		t.Fatal(err)
	}
	a := &attempt{Runner: &Runner{Secrets: []string{"opensesame"}}}
	text, err := json.Marshal(a.withoutSecrets("", info))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"s3cr3t", "3303131313", "opensesame"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is still in %s", secret, text)
		}
	}
	for _, fact := range []string{`"max_total_num_tokens":116171`, `"kvcache":10.42`, `"model_path":"/m"`, `"chat_template":null`, `["serve","--api-key","***","--tp-size","8"]`} {
		if !strings.Contains(string(text), fact) {
			t.Errorf("%s is lost from %s", fact, text)
		}
	}
	if !strings.Contains(answer, "s3cr3t") || info["api_key"] != "s3cr3t-1" {
		t.Error("the answer itself was changed")
	}
}
