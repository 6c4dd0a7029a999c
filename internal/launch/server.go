package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sgtune/sglang"
)

// maxInfo is the largest /server_info read; real ones are some 100 KB.
const maxInfo = 8 << 20

// ReadServer asks a running server for its configuration: GET /server_info, or /get_server_info
// before 0.5.6. key is the server's API key, "" for none. When the server runs on this machine, its
// process tells the command and the environment too. The context limits how long it may take: a
// server that is stuck never answers.
func ReadServer(ctx context.Context, client *http.Client, base, key string, processes Processes) (Launch, error) {
	address, err := url.Parse(base)
	if err != nil || address.Host == "" {
		return Launch{}, fmt.Errorf("%s is no URL of a server; write it like http://127.0.0.1:30000", base)
	}
	info, err := serverInfo(ctx, client, address, key)
	if err != nil {
		return Launch{}, err
	}
	version, _ := info["version"].(string)
	if pid := localListener(address, processes); pid > 0 {
		if l, err := processes.Read(pid); err == nil {
			l.Kind, l.Version, l.Name = KindServer, version, fmt.Sprintf("%s (%s)", base, l.Name)
			return l, nil
		}
	}
	l := Launch{Kind: KindServer, Name: base, Version: version, Command: []string{"python3", "-m", "sglang.launch_server"}, Env: map[string]string{}}
	l.note("A URL does not tell how the server is started: python3 is assumed, and its environment is unknown. Run sgtune init --from PID on its machine to know both.")
	v, err := sglang.ParseVersion(version)
	if err != nil {
		l.note("The server does not say its version; its flags are read as those of the newest one known.")
	}
	if typed, ok := info["launch_command"].(string); ok && strings.Contains(typed, "--") {
		l.Args = typedArgs(typed, v)
		return l, nil
	}
	l.Args, l.Resolved = resolvedArgs(info, v), true
	return l, nil
}

func serverInfo(ctx context.Context, client *http.Client, base *url.URL, key string) (map[string]any, error) {
	for _, path := range []string{"/server_info", "/get_server_info"} {
		info, status, err := get(ctx, client, base.JoinPath(path).String(), key)
		switch {
		case err != nil:
			return nil, err
		case status == http.StatusOK:
			return info, nil
		case status == http.StatusUnauthorized || status == http.StatusForbidden:
			return nil, fmt.Errorf("%s wants an API key; put it into SGTUNE_API_KEY, or name another variable with --api-key-env", base.Redacted())
		case status != http.StatusNotFound:
			return nil, fmt.Errorf("%s answers %s with status %d; is it an SGLang server that is ready?", base.Redacted(), path, status)
		}
	}
	return nil, fmt.Errorf("%s has no /server_info: it is no SGLang server; a router in front of one hides it, so give the server's own address", base.Redacted())
}

func get(ctx context.Context, client *http.Client, address, key string) (info map[string]any, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, 0, fmt.Errorf("ask %s: %w", address, err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("ask the server: %w; is it up, and is the port right?", withoutURL(err))
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	if resp.StatusCode != http.StatusOK {
		return nil, resp.StatusCode, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxInfo))
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w; is it SGLang's own address?", address, withoutURL(err))
	}
	if err := json.Unmarshal(body, &info); err != nil || info["model_path"] == nil {
		return nil, 0, fmt.Errorf("%s did not answer as an SGLang server does; give the server's own address", address)
	}
	return info, http.StatusOK, nil
}

// withoutURL is a client's error without the method and address it repeats.
func withoutURL(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("it did not answer in time")
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// localListener is the process behind a loopback address; 0 when the server is elsewhere.
func localListener(address *url.URL, processes Processes) int {
	host := address.Hostname()
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return 0
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil || processes.Root == "" {
		return 0
	}
	return processes.Listener(port)
}

// typedArgs splits launch_command, the arguments as typed but joined by blanks without quotes: a
// value ends where the next known flag begins.
func typedArgs(typed string, v sglang.Version) []string {
	flags, _ := sglang.FlagsOf(v)
	words := strings.Split(typed, " ")
	for len(words) > 0 && !strings.HasPrefix(words[0], "--") { // sys.argv has the program first
		words = words[1:]
	}
	var out []string
	var flag sglang.Flag
	value := false // the last word of out is the beginning of a value
	for _, w := range words {
		name, inline, isFlag := flagWord(w, flags)
		switch {
		case isFlag:
			out, flag = append(out, w), name
			value = inline
		case value && !flag.Many && flag.TakesValue:
			out[len(out)-1] += " " + w
		default:
			out, value = append(out, w), true
		}
	}
	return out
}

func flagWord(w string, flags sglang.Flags) (f sglang.Flag, inline, ok bool) {
	name, dashes := strings.CutPrefix(w, "--")
	if !dashes {
		return f, false, false
	}
	name, _, inline = strings.Cut(name, "=")
	f, err := flags.Find(name)
	return f, inline, err == nil
}

// chosen are fields of server_info that a server fills in itself when nothing was asked for. Passing
// them on would freeze choices that depend on what a study varies.
var chosen = []string{
	"attention-backend", "cuda-graph-bs", "cuda-graph-bs-decode", "cuda-graph-bs-prefill", "cuda-graph-config", "cuda-graph-max-bs", "cuda-graph-max-bs-decode",
	"cuda-graph-max-bs-prefill", "decode-attention-backend", "device", "enable-multimodal", "forward-hooks", "fp4-gemm-runner-backend", "fp8-gemm-runner-backend",
	"grammar-backend", "linear-attn-backend", "load-balance-method", "log-level-http", "mamba-backend", "mamba-ssm-dtype", "mm-attention-backend",
	"mm-process-config", "model-config-parser", "moe-runner-backend", "nccl-port", "piecewise-cuda-graph-max-tokens", "piecewise-cuda-graph-tokens",
	"preferred-sampling-params", "prefill-attention-backend", "random-seed", "sampling-backend", "speculative-attention-mode",
	"speculative-draft-attention-backend", "speculative-moe-a2a-backend", "speculative-moe-runner-backend", "torch-compile-max-bs", "watermark-config",
}

// resolvedArgs spells the configuration a server ended up with as arguments: what differs from its
// version's defaults, without what a server chooses for itself. The memory fraction and the chunk
// size stay although they may be chosen: they are what a study searches first.
func resolvedArgs(info map[string]any, v sglang.Version) []string {
	flags, _ := sglang.FlagsOf(v)
	model, _ := info["model_path"].(string)
	args := []string{"--model-path", model}
	done := map[string]bool{"model-path": true}
	info = undivided(info)
	for _, name := range flags.Names() {
		flag := flags[name]
		value, has := info[strings.ReplaceAll(name, "-", "_")]
		switch {
		case done[flag.Canonical], !has, value == nil, flag.Deprecated, slices.Contains(chosen, name):
			continue
		case (name == "served-model-name" || name == "tokenizer-path") && value == model:
			continue
		case sameValue(value, flag.Default):
			continue
		}
		done[flag.Canonical] = true
		args = append(args, spell(name, value, flag)...)
	}
	return args
}

// undivided takes back what data-parallel attention does to two arguments
// (arg_groups/parallel_hook.py): the chunk is divided by the groups, the conservativeness times 0.3.
func undivided(info map[string]any) map[string]any {
	groups, _ := info["dp_size"].(float64)
	if on, _ := info["enable_dp_attention"].(bool); !on || groups < 2 {
		return info
	}
	info = maps.Clone(info)
	if chunk, ok := info["chunked_prefill_size"].(float64); ok && chunk > 0 {
		info["chunked_prefill_size"] = chunk * groups
	}
	if c, ok := info["schedule_conservativeness"].(float64); ok {
		info["schedule_conservativeness"] = math.Round(c/0.3*1e6) / 1e6
	}
	return info
}

func sameValue(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// spell writes one field of server_info as the words of its flag.
func spell(name string, value any, flag sglang.Flag) []string {
	switch v := value.(type) {
	case bool:
		switch {
		case flag.TakesValue:
			return []string{"--" + name, strconv.FormatBool(v)}
		case v:
			return []string{"--" + name}
		case flag.Form == sglang.FormSwitch:
			return []string{"--no-" + name}
		}
		return nil
	case []any:
		if len(v) == 0 {
			return nil
		}
		words := []string{"--" + name}
		for _, x := range v {
			words = append(words, sglang.FormatValue(x))
		}
		return words
	case map[string]any:
		b, err := json.Marshal(v)
		if err != nil || len(v) == 0 {
			return nil
		}
		return []string{"--" + name, string(b)}
	}
	text := sglang.FormatValue(value)
	if text == "" {
		return nil
	}
	return []string{"--" + name, text}
}
