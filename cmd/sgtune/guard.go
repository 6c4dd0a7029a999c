package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sgtune/host"
)

// newGuardCommand is the process beside a server that ends the trial before the kernel, or after the tuner, has to.
// Programs that run on the server's machine as an agent call host.Guard themselves.
func newGuardCommand() *cobra.Command {
	var o host.GuardOptions
	var job bool
	cmd := &cobra.Command{
		Use: "guard --job | --pid N", Short: "Watch one trial and end it in time (used by sgtune itself)", Hidden: true, Args: cobra.NoArgs,
		Long: "Watches the process group of a trial until nothing of it lives. Kills it when host memory falls below a line, and stops\n" +
			"it when its time is up or the tuner has been silent for too long. Prints its verdict as JSON; exit 0 whatever that is.\n" +
			"With --job it is told on standard input what to watch, before that exists: so tune runs one beside each local server.",
		Example: "  sgtune guard --pid 4711 --marker s-12 --min-free 4e9 --time-limit 2h --heartbeat beat --absence 10m --verdict guard.json --evidence guard.jsonl",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runGuard(cmd, o, job)
		},
	}
	var free, growth float64
	f := cmd.Flags()
	f.BoolVar(&job, "job", false, "read what to watch from standard input, and answer on standard output")
	f.IntVar(&o.ID.PID, "pid", 0, "the trial's main process, leader of its group")
	f.Uint64Var(&o.ID.StartTicks, "start-ticks", 0, "its start time (field 22 of /proc/PID/stat); 0 = whoever has the pid now")
	f.StringVar(&o.ID.Marker, "marker", "", "the trial's "+host.MarkerEnv)
	f.Float64Var(&free, "min-free", 0, "bytes that must stay free; 0 = 5% of the memory, within 1 and 4 GiB; -1 = no watch")
	f.Float64Var(&growth, "swap-growth", 0, "bytes of swap that may be taken; 0 = no limit")
	f.DurationVar(&o.TimeLimit, "time-limit", 0, "how long the trial may run; 0 = no limit")
	f.DurationVar(&o.Absence, "absence", 0, "how long the heartbeat may be silent; 0 = no limit")
	f.StringVar(&o.Heartbeat, "heartbeat", "", "file that the tuner touches")
	f.DurationVar(&o.Grace, "grace", 30*time.Second, "from SIGTERM to SIGKILL when time is up or the tuner gone")
	f.StringVar(&o.Verdict, "verdict", "", "file for the verdict")
	f.StringVar(&o.Evidence, "evidence", "", "file for a sample each second (JSON lines)")
	f.Int64Var(&o.MaxEvidence, "max-evidence", 8<<20, "bytes of that file")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		o.MinFree, o.SwapGrowth = int64(free), int64(growth)
		switch {
		case job:
			return nil
		case o.ID.PID <= 1:
			return usagef("guard: --pid must name the trial's main process")
		case o.Absence > 0 && o.Heartbeat == "":
			return usagef("guard: --absence needs --heartbeat FILE, the file that the tuner touches")
		case math.IsNaN(free) || growth < 0 || o.TimeLimit < 0 || o.Absence < 0 || o.Grace < 0 || o.MaxEvidence < 0:
			return usagef("guard: limits must not be negative (only --min-free -1 is: no watch)")
		}
		return nil
	}
	return cmd
}

func runGuard(cmd *cobra.Command, o host.GuardOptions, job bool) error {
	// Neither a closed terminal nor Ctrl-C for sgtune ends the guard: it must outlive the tuner. SIGTERM is for itself.
	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, os.Interrupt, syscall.SIGHUP, syscall.SIGPIPE)
	defer signal.Stop(deaf)
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
	defer stop()
	if job || o.Evidence != "" && host.DriverPresent() {
		gpus, err := guardGPUs()
		if err != nil {
			return err
		}
		o.GPUs = gpus
	}
	if job {
		return host.GuardMain(ctx, host.NewLocal(host.LocalOptions{GPUs: o.GPUs}), cmd.InOrStdin(), cmd.OutOrStdout())
	}
	g, err := host.NewGuard(host.NewLocal(host.LocalOptions{}), o)
	if err != nil {
		return err
	}
	v, err := g.Run(ctx)
	if told := json.NewEncoder(cmd.OutOrStdout()).Encode(v); told != nil && err == nil && o.Verdict == "" {
		err = fmt.Errorf("print verdict: %w", told)
	}
	return err
}

// guardGPUs reads the GPUs in a process of its own, as the study does.
func guardGPUs() (host.GPUReader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find sgtune's own program: %w", err)
	}
	facts := &host.GPUFacts{NVML: &host.Probe{Argv: []string{self, "nvml-probe"}}, SMI: &host.SMI{}}
	return facts.Read, nil
}
