package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	gpus     = 8
	totalMiB = 97871
	idleMiB  = 600 // of a card that nobody uses
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Println(err) // nvidia-smi too says it there
		os.Exit(2)
	}
}

func run(args []string, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	held, err := claims(filepath.Join(filepath.Dir(self), "claims"))
	if err != nil {
		return err
	}
	for _, arg := range args {
		what, columns, _ := strings.Cut(arg, "=")
		switch what {
		case "--query-gpu":
			return printGPUs(out, strings.Split(columns, ","), held)
		case "--query-compute-apps":
			for _, c := range held {
				if c.shown {
					_, _ = fmt.Fprintf(out, "%s, %d, %d, sim-server\n", uuid(c.gpu), c.pid, c.mib)
				}
			}
			return nil
		case "--query-remapped-rows":
			for i := range gpus {
				_, _ = fmt.Fprintf(out, "%s, No, No\n", uuid(i))
			}
			return nil
		}
	}
	return fmt.Errorf("fakesmi: no query in %q", args)
}

func uuid(gpu int) string { return fmt.Sprintf("GPU-fa4e0000-0000-0000-0000-%012d", gpu) }

func printGPUs(out io.Writer, columns []string, held []claim) error {
	for i := range gpus {
		used := idleMiB
		for _, c := range held {
			if c.gpu == i {
				used += c.mib
			}
		}
		known := map[string]string{
			"index": strconv.Itoa(i), "uuid": uuid(i), "memory.total": strconv.Itoa(totalMiB), "memory.used": strconv.Itoa(min(used, totalMiB)),
			"driver_version": "580.95.05", "mig.mode.current": "Disabled", "name": "FAKE 96 GB GPU",
			"clocks_event_reasons.active": "0x0000000000000000", "ecc.errors.uncorrected.volatile.total": "0",
		}
		var row []string
		for _, name := range columns {
			value, ok := known[name]
			if !ok {
				value = "[N/A]"
			}
			row = append(row, value)
		}
		_, _ = fmt.Fprintln(out, strings.Join(row, ", "))
	}
	return nil
}

// claim is one file GPU-PID.
type claim struct {
	gpu, pid, mib int
	shown         bool // among the processes
}

// claims reads the folder; a folder that is not there holds none. Live claims of dead processes are removed, those of host
// memory (ram-PID) too: a later process with the same pid must not inherit them.
func claims(dir string) ([]claim, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*-[0-9]*"))
	if err != nil {
		return nil, err
	}
	var list []claim
	for _, file := range files {
		left, right, _ := strings.Cut(filepath.Base(file), "-")
		gpu, ram := strconv.Atoi(left)
		pid, bad := strconv.Atoi(right)
		b, gone := os.ReadFile(file)
		words := strings.Fields(string(b))
		if bad != nil || gone != nil || len(words) == 0 {
			continue
		}
		mode := append(words, "live")[1]
		if mode == "live" && !lives(pid) {
			_ = os.Remove(file)
			continue
		}
		if ram != nil {
			continue
		}
		mib, err := strconv.Atoi(words[0])
		if err != nil {
			return nil, fmt.Errorf("fakesmi: %s holds %q", file, b)
		}
		list = append(list, claim{gpu: gpu, pid: pid, mib: mib, shown: mode != "ghost"})
	}
	return list, nil
}

// lives reports whether a process is there and no zombie.
func lives(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return !bytes.HasPrefix(b[bytes.LastIndexByte(b, ')')+1:], []byte(" Z"))
}
