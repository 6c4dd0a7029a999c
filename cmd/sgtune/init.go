package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sgtune/internal/launch"
	"sgtune/sglang"
)

// serverInfoTimeout is real time for /server_info, which goes through the scheduler and waits behind
// a long prefill.
const serverInfoTimeout = 30 * time.Second

// initFlags are what the command line of init says.
type initFlags struct {
	from, output, version, workload, keyEnv string
	pick                                    int
	force                                   bool
}

func newInitCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a study file whose baseline is what runs today",
		Long: "Reads how your server is launched today and writes a commented study file: your command and flags, today's values as\n" +
			"the baseline, and a first search space around them. --from takes a server's URL, a process id, a command line in one\n" +
			"word, or a file: a shell or Slurm script, a systemd unit, a compose file, a Kubernetes manifest, a Dockerfile, a\n" +
			"Makefile, a README with blocks of code, pasted terminal lines, SGLang's own yaml, a plain line of arguments. docker run\n" +
			"and podman run become server.container. Nothing in it is executed. Only what differs from SGLang's defaults is kept,\n" +
			"secrets are never written. Without --from the file is a template to fill in.",
		Example: "  sgtune init --from serve.sh -o night.yaml\n" +
			"  sgtune init --from http://127.0.0.1:30000 -o night.yaml --workload requests.jsonl\n" +
			"  sgtune init --from 'docker run --gpus all -v /models:/models lmsysorg/sglang:v0.5.9 sglang serve /models/m' > night.yaml\n" +
			"  sgtune init --from $(pgrep -of sglang.launch_server) > night.yaml",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return initStudy(cmd.Context(), f, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.from, "from", "", "URL of a server, process id, file or command line that launches SGLang (- for standard input)")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "study file to write (default standard output)")
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite the study file")
	cmd.Flags().IntVar(&f.pick, "pick", 0, "which launch to take when the source has several, from 1")
	cmd.Flags().StringVar(&f.version, "sglang-version", "", "SGLang version to write the study for (default what the source or the installation says)")
	cmd.Flags().StringVar(&f.workload, "workload", "", "file with the requests to replay")
	cmd.Flags().StringVar(&f.keyEnv, "api-key-env", "SGTUNE_API_KEY", "environment variable with the server's API key")
	return cmd
}

// initStudy reads the launch, writes the study, and says what to do next.
func initStudy(ctx context.Context, f initFlags, in io.Reader, stdout, stderr io.Writer) error {
	opt := launch.PlanOptions{From: f.from}
	if f.version != "" {
		v, err := sglang.ParseVersion(f.version)
		if err != nil {
			return usagef("--sglang-version: %w", err)
		}
		opt.Version = v
	}
	if err := checkOutput(f.output, f.force); err != nil {
		return err
	}
	var err error
	if opt.Workload, err = workloadPath(f.workload, f.output); err != nil {
		return err
	}
	var plan *launch.Plan
	if f.from == "" {
		plan = launch.Template(opt)
	} else {
		l, err := readLaunch(ctx, f, in, stderr)
		if err != nil {
			return err
		}
		if opt.Version == (sglang.Version{}) && l.Version == "" {
			l.Version = l.InstalledVersion()
		}
		if l.Kind == launch.KindCommand {
			opt.From = "" // it may hold secrets, and it is all in the file
		}
		plan = launch.NewPlan(l, opt)
	}
	var text bytes.Buffer
	if err := plan.WriteStudy(&text); err != nil {
		return fmt.Errorf("write the study: %w", err)
	}
	if f.output == "" {
		if _, err := stdout.Write(text.Bytes()); err != nil {
			return fmt.Errorf("write the study: %w", err)
		}
	} else if err := writeWhole(f.output, text.Bytes(), f.force); err != nil {
		return err
	}
	return printInit(stderr, plan, f)
}

var (
	urlShape  = regexp.MustCompile(`^https?://`)
	hostShape = regexp.MustCompile(`^(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):\d{1,5}$`)
)

// readLaunch reads the one launch that is meant.
func readLaunch(ctx context.Context, f initFlags, in io.Reader, stderr io.Writer) (launch.Launch, error) {
	processes := launch.Processes{Root: "/proc"}
	_, statErr := os.Stat(f.from)
	address := f.from
	if statErr != nil && hostShape.MatchString(f.from) {
		address = "http://" + f.from
	}
	switch pid, err := strconv.Atoi(f.from); {
	case urlShape.MatchString(address):
		ctx, cancel := context.WithTimeout(ctx, serverInfoTimeout)
		defer cancel()
		l, err := launch.ReadServer(ctx, http.DefaultClient, address, os.Getenv(f.keyEnv), processes)
		if err != nil {
			return l, failf(exitFailed, "%w", err)
		}
		return l, nil
	case err == nil && statErr != nil:
		l, err := processes.Read(pid)
		if err != nil {
			return l, failf(exitFailed, "%w", err)
		}
		return l, nil
	}
	launches, err := readLaunchFile(f.from, in)
	if err != nil {
		return launch.Launch{}, usagef("%w", err)
	}
	return pickLaunch(launches, f, stderr)
}

// maxLaunchFile is more than any launch file has; the reader names its own limit.
const maxLaunchFile = 1 << 20

func readLaunchFile(name string, in io.Reader) ([]launch.Launch, error) {
	opt := launch.Options{Path: name, Lookup: os.LookupEnv, ReadFile: readLaunchBytes}
	if name == "-" {
		source, err := io.ReadAll(io.LimitReader(in, maxLaunchFile))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		opt.Path = ""
		return launch.Read("standard input", source, opt)
	}
	if path, err := filepath.Abs(name); err == nil {
		opt.Path = path
	}
	info, err := os.Stat(name)
	switch {
	case err != nil && strings.ContainsAny(strings.TrimSpace(name), " \t\n"):
		opt.Path = ""
		if dir, err := os.Getwd(); err == nil {
			opt.Path = filepath.Join(dir, "from")
		}
		return launch.ReadCommand("--from (no file has this name, so it is read as a command line)", name, opt)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--from %s: no such file; give a file that launches SGLang, a process id, or a URL like http://127.0.0.1:30000", name)
	case err != nil:
		return nil, fmt.Errorf("--from: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("--from %s is a folder; name the file in it that launches SGLang", name)
	}
	source, err := readLaunchBytes(name)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	return launch.Read(name, source, opt)
}

func readLaunchBytes(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	return io.ReadAll(io.LimitReader(f, maxLaunchFile))
}

// pickLaunch is the launch --pick names, or the only one.
func pickLaunch(all []launch.Launch, f initFlags, stderr io.Writer) (launch.Launch, error) {
	if f.pick == 0 && len(all) == 1 {
		return all[0], nil
	}
	if f.pick >= 1 && f.pick <= len(all) {
		return all[f.pick-1], nil
	}
	for i, l := range all {
		if _, err := fmt.Fprintf(stderr, "  %d  %s\n", i+1, oneLine(sglang.Mask(l.Describe()))); err != nil {
			return launch.Launch{}, fmt.Errorf("list the launches: %w", err)
		}
	}
	if f.pick != 0 {
		return launch.Launch{}, usagef("--pick %d: %s has %s of SGLang; give a number from 1 to %d", f.pick, f.from, count(len(all), "launch"), len(all))
	}
	return launch.Launch{}, usagef("%s launches SGLang in %d ways; choose one with --pick 1 to --pick %d", f.from, len(all), len(all))
}
