package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Processes reads running processes from a proc file system.
type Processes struct {
	Root string // "/proc"
}

// Read finds how the SGLang server that a process belongs to was launched. pid may be the launcher
// itself or any process below it; the parents of a scheduler lead to its launcher.
func (p Processes) Read(pid int) (Launch, error) {
	if _, err := os.Stat(p.path(pid, "stat")); err != nil {
		return Launch{}, fmt.Errorf("process %d does not run (any more); find it with: pgrep -af sglang", pid)
	}
	at := 0
	for next, hops := pid, 0; next > 1 && hops < 64; hops++ {
		words, err := p.words(next, "cmdline")
		if err != nil && hops == 0 {
			return Launch{}, fmt.Errorf("read the command line of process %d: %w", pid, err)
		}
		if _, _, ok := launcher(words); ok {
			at = next
		} else if at != 0 {
			break // above the launcher: a shell, a service manager
		}
		if next, err = p.parent(next); err != nil {
			break
		}
	}
	if at == 0 {
		return Launch{}, fmt.Errorf("process %d belongs to no SGLang server: neither it nor its parents are `python -m sglang.launch_server` or `sglang serve`; find the server with: pgrep -af sglang", pid)
	}
	return p.launch(at)
}

func (p Processes) launch(pid int) (Launch, error) {
	words, err := p.words(pid, "cmdline")
	if err != nil {
		return Launch{}, fmt.Errorf("read the command line of process %d: %w", pid, err)
	}
	a := around{kind: KindProcess, name: fmt.Sprintf("process %d", pid), env: map[string]string{}}
	if dir, err := os.Readlink(p.path(pid, "cwd")); err == nil {
		a.dir = dir
	}
	l, _ := launchOf(words, a)
	pairs, err := p.words(pid, "environ")
	if err != nil {
		l.note("The environment of process %d cannot be read (run sgtune as its user); add what it needs to server.env.", pid)
	}
	env := map[string]string{}
	for _, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	for name, value := range env {
		if matters(name) && value != "" {
			l.Env[name] = value
		}
	}
	l.whole(env["PATH"], env["VIRTUAL_ENV"])
	l.withConfig(Options{ReadFile: os.ReadFile, Path: filepath.Join(l.Dir, "-")})
	return l, nil
}

// whole gives the launched program the path the process found it at, so that another shell starts
// the same one.
func (l *Launch) whole(search, venv string) {
	first, _, ok := launcher(l.Command)
	if !ok {
		first = 0
	}
	for _, i := range []int{0, first} {
		word := l.Command[i]
		if strings.Contains(word, "/") {
			continue
		}
		dirs := filepath.SplitList(search)
		if venv != "" {
			dirs = append([]string{filepath.Join(venv, "bin")}, dirs...)
		}
		for _, dir := range dirs {
			path := filepath.Join(dir, word)
			if info, err := os.Stat(path); err == nil && !info.IsDir() && filepath.IsAbs(path) {
				l.Command[i] = path
				break
			}
		}
	}
}

func (p Processes) path(pid int, file string) string {
	return filepath.Join(p.Root, strconv.Itoa(pid), file)
}

// words reads a file of words that end in a zero byte.
func (p Processes) words(pid int, file string) ([]string, error) {
	b, err := os.ReadFile(p.path(pid, file))
	if err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(string(b), "\x00")
	if text == "" {
		return nil, nil
	}
	return strings.Split(text, "\x00"), nil
}

// parent reads the parent's pid, the second field after the name in brackets.
func (p Processes) parent(pid int) (int, error) {
	b, err := os.ReadFile(p.path(pid, "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, errors.New("no parent in stat")
	}
	return strconv.Atoi(fields[1])
}

// Listener finds the process that listens on a TCP port of this machine; 0 when none can be seen.
func (p Processes) Listener(port int) int {
	sockets := map[string]bool{}
	for _, file := range []string{"net/tcp", "net/tcp6"} {
		b, err := os.ReadFile(filepath.Join(p.Root, file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" { // listening
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			if n, err := strconv.ParseUint(hex, 16, 16); err == nil && int(n) == port {
				sockets["socket:["+f[9]+"]"] = true
			}
		}
	}
	entries, err := os.ReadDir(p.Root)
	if err != nil || len(sockets) == 0 {
		return 0
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		fds, err := filepath.Glob(p.path(pid, "fd/*"))
		if err != nil {
			continue
		}
		if slices.ContainsFunc(fds, func(fd string) bool { to, err := os.Readlink(fd); return err == nil && sockets[to] }) {
			return pid
		}
	}
	return 0
}

// meaningful are the beginnings of variables that change how a server runs.
var meaningful = []string{
	"SGLANG_", "SGL_", "NCCL_", "CUDA_", "TORCH", "PYTORCH_", "TRITON_", "FLASHINFER_", "HF_", "HUGGING_FACE_", "HUGGINGFACE_", "TRANSFORMERS_",
	"TOKENIZERS_", "NVSHMEM_", "GLOO_", "UCX_", "OMP_", "MKL_", "KMP_", "MC_", "MOONCAKE_", "DG_", "DEEPEP_", "DEEP_GEMM", "HIP_", "HSA_",
	"ROCR_", "RCCL_", "AITER_", "NVIDIA_", "VLLM_", "MODELSCOPE_", "FLASHMLA_", "ASCEND_", "HCCL_",
}

var meaningfulNames = []string{"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "USE_MODELSCOPE", "HIP_VISIBLE_DEVICES", "PYTHONUNBUFFERED"}

// matters reports whether a variable changes how a server runs.
func matters(name string) bool {
	return slices.Contains(meaningfulNames, name) || slices.ContainsFunc(meaningful, func(p string) bool { return strings.HasPrefix(name, p) })
}
