package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// SMI reads GPU facts by nvidia-smi, for machines where the library cannot be used from here and for programs
// without cgo. It must not be copied after the first Read.
type SMI struct {
	Program string        // "" = nvidia-smi of the PATH
	Timeout time.Duration // real time for one reading, 0 = 5 s

	mu      sync.Mutex
	run     Probe       // holds a query that hangs in the driver
	columns []smiColumn // those this nvidia-smi knows, nil before the first answer
	rows    Answer      // whether it can query remapped rows
}

// Read returns the GPUs, or none and a note that says why. It takes Timeout and a second at most.
func (s *SMI) Read(ctx context.Context) ([]GPU, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = probeTimeout
	}
	s.run.Timeout = timeout
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("nvidia-smi "+phraseHung+" %s", timeout))
	defer cancel()
	gpus, err := s.read(ctx)
	if err != nil {
		return nil, note(err)
	}
	return gpus, ""
}

func (s *SMI) read(ctx context.Context) ([]GPU, error) {
	out, err := s.queryGPUs(ctx)
	if err != nil {
		return nil, err
	}
	gpus, err := parseSMIGPUs(out, s.columns)
	if err != nil {
		return nil, err
	}
	if out, err = s.query(ctx, "--query-compute-apps="+smiAppColumns); err != nil {
		return nil, err
	}
	if err := parseSMIApps(out, gpus); err != nil {
		return nil, err
	}
	if s.rows == No {
		return gpus, nil
	}
	switch out, err = s.query(ctx, "--query-remapped-rows="+smiRowColumns); {
	case err == nil:
		s.rows = Yes
		if err = parseSMIRows(out, gpus); err == nil {
			return gpus, nil
		}
	case s.rows == Unknown && TroubleOf(err.Error()) == TroubleOther: // an old nvidia-smi, or cards without
		s.rows = No
		return gpus, nil
	}
	return nil, err
}

// unknownField is how nvidia-smi refuses a column: it prints this alone and ends with status 2.
var unknownField = regexp.MustCompile(`Field "([^"]+)" is not a valid field to query`)

// queryGPUs asks for all columns; one that this nvidia-smi does not know is asked for by its other name and then
// left out.
func (s *SMI) queryGPUs(ctx context.Context) (string, error) {
	columns := s.columns
	if columns == nil {
		columns = slices.Clone(smiColumns)
	}
	for {
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c.name
		}
		out, err := s.query(ctx, "--query-gpu="+strings.Join(names, ","))
		if err == nil {
			s.columns = columns
			return out, nil
		}
		refused := unknownField.FindStringSubmatch(err.Error())
		if refused == nil {
			return "", err
		}
		i := slices.Index(names, refused[1])
		switch {
		case i < 0 || columns[i].needed:
			return "", err
		case columns[i].older != "":
			columns[i].name, columns[i].older = columns[i].older, ""
		default:
			columns = slices.Delete(columns, i, i+1)
		}
	}
}

// infoROM is the status of nvidia-smi when all went well beside a card whose memory of itself is damaged.
const infoROM = 14

// query runs nvidia-smi once. Its own words are part of the error.
func (s *SMI) query(ctx context.Context, what string) (string, error) {
	program := s.Program
	if program == "" {
		program = "nvidia-smi"
	}
	s.run.Argv = []string{program, what, "--format=csv,noheader,nounits"}
	out, err := s.run.Output(ctx)
	var status *exec.ExitError
	switch {
	case err == nil:
		return string(out), nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", errors.New(phraseNoSMI)
	case !errors.As(err, &status):
		return "", err
	}
	said := strings.Join(strings.Fields(string(out)), " ")
	switch code := status.ExitCode(); {
	case code == infoROM:
		return string(out), nil
	case code == 15, lostWords(said), lostWords(err.Error()):
		return "", fmt.Errorf("nvidia-smi: %s: %w", phraseLost, err)
	case code == 9:
		return "", fmt.Errorf("nvidia-smi: %s: %w", phraseNoDriver, err)
	case code == 6 || strings.Contains(said, "No devices were found"):
		return "", errors.New("nvidia-smi " + phraseNoGPU)
	}
	return "", fmt.Errorf("nvidia-smi %s: %w", strings.SplitN(what, "=", 2)[0], err)
}

// lostWords are what nvidia-smi says of a GPU that does not answer.
func lostWords(text string) bool {
	text = strings.ToLower(text)
	for _, sign := range []string{"gpu is lost", "fallen off the bus", "requires reset", "reset required"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
