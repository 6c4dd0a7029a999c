package host

import (
	"bufio"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// smiColumn is one column of --query-gpu.
type smiColumn struct {
	name   string
	older  string // its name before, "" = it had none
	needed bool   // without it there is no reading
	set    func(g *GPU, text string) error
}

// smiColumns are what is asked for. The name of the card comes last: whatever it holds, the columns before it
// stay in their places.
var smiColumns = []smiColumn{
	{name: "index", needed: true, set: func(g *GPU, text string) (err error) {
		g.Index, err = smiInt(text, maxGPUs)
		return err
	}},
	{name: "uuid", needed: true, set: func(g *GPU, text string) error {
		if g.UUID = text; text == "" || smiUnknown(text) {
			return errors.New("no UUID")
		}
		return nil
	}},
	{name: "memory.total", needed: true, set: func(g *GPU, text string) (err error) {
		g.Total, err = smiMiB(text)
		return err
	}},
	{name: "memory.used", needed: true, set: func(g *GPU, text string) (err error) {
		g.Used, err = smiMiB(text)
		return err
	}},
	{name: "pci.bus_id", set: smiText(func(g *GPU) *string { return &g.PCI })},
	{name: "driver_version", set: smiText(func(g *GPU) *string { return &g.Driver })},
	{name: "power.draw", set: smiFigure(func(g *GPU) *Figure { return &g.PowerWatts })},
	{name: "enforced.power.limit", set: smiFigure(func(g *GPU) *Figure { return &g.PowerLimitWatts })},
	{name: "clocks.sm", set: smiFigure(func(g *GPU) *Figure { return &g.SMClockMHz })},
	{name: "clocks.mem", set: smiFigure(func(g *GPU) *Figure { return &g.MemoryClockMHz })},
	{name: "temperature.gpu", set: smiFigure(func(g *GPU) *Figure { return &g.TemperatureC })},
	{name: "ecc.errors.uncorrected.volatile.total", set: smiFigure(func(g *GPU) *Figure { return &g.UncorrectedECC })},
	{name: "clocks_event_reasons.active", older: "clocks_throttle_reasons.active", set: func(g *GPU, text string) error {
		if smiUnknown(text) {
			return nil
		}
		mask, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
		if err == nil {
			g.Throttle = throttleOf(mask)
		}
		return err
	}},
	{name: "mig.mode.current", set: smiAnswer("Enabled", "Disabled", func(g *GPU) *Answer { return &g.MIG })},
	{name: "name", set: smiText(func(g *GPU) *string { return &g.Name })},
}

// Columns of the two other queries. A process's name comes last, as a GPU's does.
const (
	smiAppColumns = "gpu_uuid,pid,used_memory,process_name"
	smiRowColumns = "gpu_uuid,remapped_rows.pending,remapped_rows.failure"
)

const (
	maxGPUs   = 1 << 10
	maxSMIMiB = 1 << 30 // a pebibyte: more is no memory of a GPU
	maxPID    = 1 << 30
)

// parseSMIGPUs reads the lines of --query-gpu, one for each GPU.
func parseSMIGPUs(out string, columns []smiColumn) ([]GPU, error) {
	var gpus []GPU
	seen := map[string]bool{}
	err := smiLines(out, len(columns), func(fields []string) error {
		var g GPU
		for i, c := range columns {
			if lostWords(fields[i]) && c.name != "name" {
				return fmt.Errorf("GPU %s: %s: %s says %s", fields[0], phraseLost, c.name, fields[i])
			}
			if err := c.set(&g, fields[i]); err != nil {
				return fmt.Errorf("GPU %s: %s %q: %w", fields[0], c.name, fields[i], err)
			}
		}
		if seen[g.UUID] {
			return fmt.Errorf("GPU %d: the UUID %s comes twice", g.Index, g.UUID)
		}
		seen[g.UUID] = true
		gpus = append(gpus, g)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(gpus) == 0:
		return nil, errors.New("nvidia-smi " + phraseNoGPU)
	}
	return gpus, nil
}

// parseSMIApps adds the processes of --query-compute-apps to their GPUs. Those of a GPU that is not listed, an
// instance of a split one, are left out, as NVML does.
func parseSMIApps(out string, gpus []GPU) error {
	return smiLines(out, 4, func(fields []string) error {
		pid, err := smiInt(fields[1], maxPID)
		if err != nil || pid == 0 {
			return fmt.Errorf("processes: pid %q is none", fields[1])
		}
		p := GPUProcess{PID: pid, Used: -1}
		if !smiUnknown(fields[2]) {
			if p.Used, err = smiMiB(fields[2]); err != nil {
				return fmt.Errorf("processes: pid %d: used_memory %q: %w", pid, fields[2], err)
			}
		}
		if !smiUnknown(fields[3]) {
			p.Name = path.Base(strings.ReplaceAll(fields[3], `\`, "/"))
		}
		for i := range gpus {
			same := func(q GPUProcess) bool { return q.PID == pid }
			if gpus[i].UUID == fields[0] && !slices.ContainsFunc(gpus[i].Processes, same) {
				gpus[i].Processes = append(gpus[i].Processes, p)
			}
		}
		return nil
	})
}

// parseSMIRows adds the answers of --query-remapped-rows.
func parseSMIRows(out string, gpus []GPU) error {
	pending := smiAnswer("Yes", "No", func(g *GPU) *Answer { return &g.RemapPending })
	broken := smiAnswer("Yes", "No", func(g *GPU) *Answer { return &g.RemapFailed })
	return smiLines(out, 3, func(fields []string) error {
		for i := range gpus {
			if gpus[i].UUID != fields[0] {
				continue
			}
			if err := errors.Join(pending(&gpus[i], fields[1]), broken(&gpus[i], fields[2])); err != nil {
				return fmt.Errorf("remapped rows of %s: %w", fields[0], err)
			}
		}
		return nil
	})
}

// smiLines calls each with the fields of every line. The last field takes what is left of the line. Warnings and
// sentences such as "No running processes found" are no rows.
func smiLines(out string, fields int, each func([]string) error) error {
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "WARNING") || strings.HasPrefix(line, "No ") {
			continue
		}
		row := strings.SplitN(line, ",", fields)
		if len(row) != fields {
			if lostWords(line) {
				return fmt.Errorf("nvidia-smi: %s: %s", phraseLost, line)
			}
			return fmt.Errorf("read nvidia-smi: %d columns where %d were asked for: %q", len(row), fields, line[:min(len(line), 200)])
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if err := each(row); err != nil {
			return fmt.Errorf("read nvidia-smi: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read nvidia-smi: %w", err)
	}
	return nil
}

// smiUnknown reports whether a field says that there is no reading: [N/A], [Not Supported], [Unknown Error],
// [Insufficient Permissions], and ERR! of a sensor that fails.
func smiUnknown(text string) bool {
	switch text {
	case "", "N/A", "ERR!", "Not Supported", "Unknown Error", "Insufficient Permissions":
		return true
	}
	return strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]")
}

func smiInt(text string, most int64) (int, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || n >= most) {
		err = errors.New("out of range")
	}
	return int(n), err
}

// smiMiB reads memory, which nvidia-smi prints in MiB.
func smiMiB(text string) (int64, error) {
	n, err := smiInt(text, maxSMIMiB)
	return int64(n) << 20, err
}

func smiText(to func(*GPU) *string) func(*GPU, string) error {
	return func(g *GPU, text string) error {
		if !smiUnknown(text) {
			*to(g) = text
		}
		return nil
	}
}

func smiFigure(to func(*GPU) *Figure) func(*GPU, string) error {
	return func(g *GPU, text string) error {
		if smiUnknown(text) {
			return nil
		}
		value, err := strconv.ParseFloat(text, 64)
		figure := Known(value)
		if err == nil && (!figure.Known || value < 0) {
			err = errors.New("no reading")
		}
		if err == nil {
			*to(g) = figure
		}
		return err
	}
}

func smiAnswer(yes, no string, to func(*GPU) *Answer) func(*GPU, string) error {
	return func(g *GPU, text string) error {
		switch {
		case text == yes:
			*to(g) = Yes
		case text == no:
			*to(g) = No
		case !smiUnknown(text):
			return fmt.Errorf("%q is neither %s nor %s", text, yes, no)
		}
		return nil
	}
}
