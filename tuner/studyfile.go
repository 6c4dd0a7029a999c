package tuner

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sgtune/sglang"
)

// QualityBF16 is the quality rule of this version: settings that may change answers stay out.
const QualityBF16 = "bf16-only"

// ReadStudy reads a study file (YAML or JSON) with its defaults filled in. Every mistake is found
// in one pass: the error is a Problems.
func ReadStudy(path string) (*Study, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Problems{{File: path, Text: "the study file does not exist; give the path of one, or start from examples/quickstart.yaml"}}
	case err != nil:
		return nil, Problems{{File: path, Text: "the study file cannot be read (" + cause(err) + "); check its path and permissions"}}
	case info.IsDir():
		return nil, Problems{{File: path, Text: "this is a folder; name the study file in it"}}
	}
	source, err := readLimited(path)
	if err != nil {
		return nil, Problems{{File: path, Text: "the study file cannot be read (" + cause(err) + "); check its permissions"}}
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		absolute = path
	}
	study, problems := parseStudy(path, source, filepath.Dir(absolute))
	if len(problems) > 0 {
		return nil, problems
	}
	study.Path = absolute
	return study, nil
}

// readLimited reads no more than shows that a file is too large: it may be a device without end.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// ParseStudy reads a study file's text, as a page or a pipe gives it: name stands in messages,
// relative paths start at dir. The error is a Problems.
func ParseStudy(name string, source []byte, dir string) (*Study, error) {
	study, problems := parseStudy(name, source, dir)
	if len(problems) > 0 {
		return nil, problems
	}
	return study, nil
}

func parseStudy(file string, source []byte, dir string) (*Study, Problems) {
	return decode(&decoder{file: file, dir: dir}, source)
}

// decode reads a study file's text by a decoder that knows its name and folder.
func decode(d *decoder, source []byte) (*Study, Problems) {
	root, problem := parseTree(source)
	if problem != nil {
		problem.File, problem.Unread = d.file, true
		return nil, Problems{*problem}
	}
	d.study, d.knobs, d.flags = defaults(), map[string]*node{}, map[string]field{}
	d.readAll(root)
	d.crossCheck()
	if len(d.problems) > 0 {
		// Mistakes without a place (missing keys) come last.
		slices.SortStableFunc(d.problems, func(a, b Mistake) int {
			if (a.Line == 0) != (b.Line == 0) {
				return cmp.Compare(b.Line, a.Line)
			}
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
		})
		return nil, d.problems
	}
	d.study.Source = maskSource(source, d.secrets)
	return d.study, nil
}

// defaults suit the founding case; what has none here must be in the file.
func defaults() *Study {
	return &Study{
		Server: sglang.Server{
			Flags: sglang.Config{}, Env: map[string]string{},
		},
		Baseline:     sglang.Config{},
		ReadyTimeout: 25 * time.Minute,
		Host: HostSpec{
			Kind: HostLocal, TunerGone: 15 * time.Minute, ReplayFrom: "host",
			Profile: Profiles[0], TimeScale: 100, Startup: 15 * time.Minute, Seed: 1, RAMBytes: 449e9,
			Slurm: SlurmSpec{Parallel: 1},
		},
		Workload:  WorkloadSpec{Concurrency: []int{40, 80, 120, 160}, Target: 0.03, Cap: 10 * time.Minute},
		Objective: Objective{Metric: "output_tok_s"},
		Quality:   QualityBF16,
		Measure:   MeasureSpec{Window: time.Minute, Max: 10 * time.Minute, Canary: 90 * time.Second, Fill: 5 * time.Minute},
		Sampler:   physicsName,
		Recover:   RecoverReclaim,
		Seed:      1,
	}
}

// readAll reads every section; handlers run in file order.
func (d *decoder) readAll(root *node) {
	s := d.study
	d.remote = isRemote(root)
	seen := d.keys(root, "", map[string]handler{
		"study":     d.readName,
		"server":    d.readServer,
		"before":    func(f field) { s.Before = d.readProgram(f, "before", "[systemctl, stop, sglang]") },
		"after":     func(f field) { s.After = d.readProgram(f, "after", "[systemctl, start, sglang]") },
		"host":      d.readHost,
		"space":     d.readSpace,
		"workload":  d.readWorkload,
		"objective": d.readObjective,
		"slo":       d.readSLO,
		"quality":   d.readQuality,
		"budget":    d.readBudget,
		"finish":    d.readFinish,
		"measure":   d.readMeasure,
		"confirm":   d.readConfirm,
		"sampler":   d.readSampler,
		"recover":   d.readRecover,
		"seed":      func(f field) { s.Seed = d.seed(f, "seed", s.Seed) },
	})
	if root.kind != mapping {
		return
	}
	if !seen["server"] {
		d.missing("`server.model` is missing; add server: {model: /models/Kimi-K2.5}")
	}
	if !seen["space"] {
		d.missing("`space` is missing; add the knobs to search, like space: {hicache-size: [0, 16, 32]}")
	}
	if !seen["workload"] {
		d.missing("`workload` is missing; add workload: {file: prompts.jsonl}")
	}
	if !seen["study"] {
		d.nameFromFile()
	}
}

func (d *decoder) readProgram(f field, where, example string) []string {
	words, ok := d.words(f, where, example)
	if !ok {
		return nil
	}
	return d.program(words)
}

var studyName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

func (d *decoder) readName(f field) {
	w, ok := d.word(f, "study", "kimi-overnight")
	switch {
	case !ok:
	case len(w) > 128:
		d.wrong(f.value, "`study` has %d characters; write a name of 1 to 128 letters, digits, . _ -", len(w))
	case !studyName.MatchString(w) || strings.Trim(w, ".") == "":
		d.wrong(f.value, "`study` cannot be %s; write a name of letters, digits, . _ - like kimi-overnight", quote(w))
	default:
		d.study.Name = w
	}
}

// nameFromFile names a study without a name after its file.
func (d *decoder) nameFromFile() {
	base := filepath.Base(d.file)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	if !studyName.MatchString(base) || strings.Trim(base, ".") == "" {
		d.missing("`study` is missing and the file's name cannot stand for it; add a name, like study: kimi-overnight")
		return
	}
	d.study.Name = base
}

// crossCheck judges what only the whole file shows and settles what depends on it.
func (d *decoder) crossCheck() {
	s := d.study
	s.Simulated = s.Host.Kind == HostSimulated || slices.Contains(s.Server.Command, "sim-server")
	if len(s.Server.Command) == 0 && s.Host.Kind != HostSimulated {
		s.Server.Command = []string{"python3", "-m", "sglang.launch_server"}
	}
	if s.Budget == (Budget{}) {
		s.Budget.Wall = 9 * time.Hour
	}
	d.crossCheckSpace()
	d.settleQuality()
	d.settleCaps()
	d.settleFinish()
	d.settleContainer()
	d.settleRecover()
	if s.Host.RAMPerRank > 0 {
		s.Host.RAMBudgetBytes = s.Host.RAMPerRank * float64(Ranks(sglang.Merge(s.Server.Flags, s.Baseline)))
	}
	if s.Measure.Window > s.Measure.Max && len(d.problems) == 0 {
		s.Measure.Window = s.Measure.Max
		s.note("Windows are as long as a level may last: %s.", FormatDuration(s.Measure.Max))
	}
	needsSLO := s.Objective.Metric == "goodput" || s.Objective.Metric == "concurrency"
	if needsSLO && s.Objective.SLO == (SLO{}) && d.objective != nil && !d.reported("slo") {
		d.wrong(d.objective, "`objective` %s counts what meets the slo, and there is none; add slo: {ttft_p95: 30s}", s.Objective.Metric)
	}
}

// reported tells whether a mistake already names a section.
func (d *decoder) reported(section string) bool {
	return slices.ContainsFunc(d.problems, func(p Mistake) bool { return strings.Contains(p.Text, section) })
}

// settleCaps makes measure.max and workload.load.cap one figure: the smaller of those written.
func (d *decoder) settleCaps() {
	w, m := &d.study.Workload, &d.study.Measure
	switch {
	case d.loadCap != nil && d.max != nil:
		w.Cap = min(w.Cap, m.Max)
	case d.max != nil:
		w.Cap = m.Max
	}
	m.Max = w.Cap
}

// settleFinish gives finish.launch its default and refuses it beside after.
func (d *decoder) settleFinish() {
	s := d.study
	switch {
	case d.launch != nil && s.Finish.Launch != "none" && len(s.After) > 0:
		d.wrong(d.launch, "`finish.launch` and `after` would both start a server; keep one of them")
	case d.launch != nil && s.Finish.Launch != "none" && s.Host.Kind == HostSlurm:
		d.wrong(d.launch, "`finish.launch` %s is not for Slurm hosts, where a job ends with its trial; remove it, and submit what sgtune export --format sh prints as a job of your own", s.Finish.Launch)
	case s.Finish.Launch != "":
	case len(s.After) > 0 || s.Simulated || s.Host.Kind == HostSlurm:
		s.Finish.Launch = "none"
	default:
		s.Finish.Launch = "best"
	}
}

// maskSource hides every secret of a study file before anything stores it.
func maskSource(source []byte, secrets []*node) []byte {
	const masked = "***"
	lines := bytes.Split(source, []byte("\n"))
	for _, n := range secrets {
		for _, part := range strings.Split(n.raw, "\n") {
			part = strings.TrimSpace(part)
			if part == "" {
				continue
			}
			for i := range lines {
				if i >= n.line-1 || len(part) >= 6 { // a short one only where it stands, not in every word
					lines[i] = maskFrom(lines[i], part, masked, i == n.line-1, n.col-1)
				}
			}
		}
	}
	return []byte(sglang.Mask(string(bytes.Join(lines, []byte("\n")))))
}

// maskFrom replaces a secret in one line: everywhere, or from its column on in the line it is in.
func maskFrom(line []byte, secret, masked string, own bool, col int) []byte {
	if own && col >= 0 && col <= len(line) {
		head, tail := line[:col:col], line[col:]
		return append(head, bytes.ReplaceAll(tail, []byte(secret), []byte(masked))...)
	}
	if len(secret) < 6 {
		return line
	}
	return bytes.ReplaceAll(line, []byte(secret), []byte(masked))
}

func (s *Study) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// cause is an error's reason without the path it repeats.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
