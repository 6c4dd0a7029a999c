package simulator

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// release orders the versions the simulator speaks; only the order means anything.
type release int

const (
	r046 release = iota
	r049
	r055
	r0510
	r0523
)

// dialect is one version of SGLang as far as others can see it: its options, what /server_info calls it, and,
// by its place in the order, how its log lines, its HTTP server and its deaths look. Read from the source of
// the versions named in full; batch lines of 0.4.9 are those of its .post2, which carry a timestamp.
type dialect struct {
	release
	name  string // what --sim-version takes
	full  string // what /server_info and /get_server_info say
	prog  string // argparse's name of the program
	flags func() *flagSet
}

//go:embed flags_0.4.6.tsv
var flags046 string

//go:embed flags_0.4.9.tsv
var flags049 string

//go:embed flags_0.5.5.tsv
var flags055 string

//go:embed flags_0.5.10.tsv
var flags0510 string

//go:embed flags_0.5.23.tsv
var flags0523 string

// dialects in order, oldest first; the last one is the default.
var dialects = []*dialect{
	{r046, "0.4.6", "0.4.6.post5", "launch_server.py", tableOf(&flags046)},
	{r049, "0.4.9", "0.4.9.post2", "launch_server.py", tableOf(&flags049)},
	{r055, "0.5.5", "0.5.5.post3", "launch_server.py", tableOf(&flags055)},
	{r0510, "0.5.10", "0.5.10.post1", "sglang serve", tableOf(&flags0510)},
	{r0523, "0.5.23", "0.5.23", "sglang serve", tableOf(&flags0523)},
}

func tableOf(text *string) func() *flagSet {
	return sync.OnceValue(func() *flagSet { return readFlags(*text) })
}

func newestDialect() *dialect { return dialects[len(dialects)-1] }

// Versions lists the versions of SGLang --sim-version takes, oldest first; the last one is the default.
func Versions() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.name
	}
	return names
}

// dialectOf finds the version a command line asks for by --sim-version; it decides how everything else is read.
func dialectOf(argv []string) (*dialect, error) {
	name := newestDialect().name
	for i, word := range argv {
		if value, ok := strings.CutPrefix(word, "--sim-version="); ok {
			name = value
		} else if word == "--sim-version" && i+1 < len(argv) {
			name = argv[i+1]
		}
	}
	return lookupVersion(name)
}

func lookupVersion(name string) (*dialect, error) {
	if i := slices.IndexFunc(dialects, func(d *dialect) bool { return d.name == name || d.full == name }); i >= 0 {
		return dialects[i], nil
	}
	return nil, usage("argument --sim-version: invalid choice: '%s' (choose from %s)", name, strings.Join(Versions(), ", "))
}

// choiceText is how the argument parser lists the values it takes: Python 3.12 dropped the quotes.
func (d *dialect) choiceText(choices []string) string {
	if d.release >= r0523 {
		return strings.Join(choices, ", ")
	}
	quoted := make([]string, len(choices))
	for i, c := range choices {
		quoted[i] = pyString(c)
	}
	return strings.Join(quoted, ", ")
}

// fewTokens is the exception of a static budget that leaves no KV pool.
func (d *dialect) fewTokens(fraction float64) string {
	const text = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."
	switch {
	case d.release <= r049:
		return text
	case d.release == r055:
		return text + " Current value: self.server_args.mem_fraction_static=" + pyFloat(fraction)
	}
	return text + " Current value: mem_fraction_static=" + pyFloat(fraction)
}

// smallHost is the refusal of a host pool that is not larger than the device pool, up to 0.5.12.
const smallHost = "AssertionError: The host memory should be larger than the device memory with the current protocol"

// graphFailed is the exception of a graph capture that ran out of memory.
func (d *dialect) graphFailed(oom string) string {
	word := "cuda graph"
	if d.release == r046 {
		word = "CUDA graph"
	}
	return fmt.Sprintf("Exception: Capture %s failed: %s", word, oom)
}

// hostPool is the line of a rank that allocates its host pool.
func (d *dialect) hostPool(tokens int, gb float64) string {
	if d.release < r0523 {
		return fmt.Sprintf("Allocating %.2f GB host memory for hierarchical KV cache.", gb)
	}
	return fmt.Sprintf("Allocating kv hierarchical KV host pool: %d tokens, %.2f GB host memory.", tokens, gb)
}

// lostRank is what the launcher says of a scheduler that died while it was waited for: lines with a time, then text.
func (d *dialect) lostRank(rank, code int) (lines []string, text string) {
	if d.release >= r0510 {
		return nil, initTraceback(fmt.Sprintf("RuntimeError: Rank %d scheduler died during initialization (exit code: %d). If exit code is -9 (SIGKILL), "+
			"a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.", rank, code))
	}
	return []string{
		fmt.Sprintf("Rank %d scheduler is dead. Please check if there are relevant logs.", rank),
		fmt.Sprintf("Exit code: %d", code),
	}, initTraceback("EOFError")
}

// childFailed is what the main process of a serving server says when a scheduler told it to quit.
func (d *dialect) childFailed() string {
	if d.release <= r049 {
		return "Received sigquit from a child process. It usually means the child failed."
	}
	return "SIGQUIT received. signum=None, frame=None. It usually means one child failed."
}

// killedScheduler is what the main process of a serving server says when a scheduler was killed by a signal.
// Before 0.5.10 nothing ends the server then: it waits for ever.
func (d *dialect) killedScheduler(pid, code int) (text string, ends bool) {
	switch d.release {
	case r046:
		return fmt.Sprintf("Child process unexpectedly failed with an exit code %d. pid=%d", -code, pid), false
	case r049:
		return fmt.Sprintf("Child process unexpectedly failed with exitcode=%d. pid=%d", -code, pid), false
	case r055:
		return "", false
	default:
	}
	return fmt.Sprintf("Subprocess scheduler_0 (pid=%d) crashed with exit code %d. Triggering SIGQUIT for cleanup...", pid, code), true
}

// drained is the last line of a server that SIGTERM ended.
func (d *dialect) drained() string {
	if d.release <= r049 {
		return "Gracefully exiting... remaining number of requests 0"
	}
	return "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[]."
}

// watchdog is the scheduler's last line before it tells the main process to quit.
func (d *dialect) watchdog(timeout string) string {
	if d.release >= r0510 {
		return fmt.Sprintf("Scheduler watchdog timeout (self.watchdog_timeout=%s, self.soft=False)", timeout)
	}
	return fmt.Sprintf("Watchdog timeout (self.watchdog_timeout=%s)", timeout)
}
