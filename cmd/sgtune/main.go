package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program with its outside world passed in; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	started := false
	root := newRootCommand(&started) //nolint:contextcheck // cobra hands ctx to the command
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	printError(stderr, err)
	if !started { // cobra refused the words before any command ran
		return exitUsage
	}
	return exitCode(err)
}

func newRootCommand(started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "sgtune",
		Short: "Find the best launch configuration of an SGLang server, overnight and safely",
		Long: "sgtune launches an SGLang server with one configuration after another, replays your workload,\n" +
			"measures, always cleans up, and in the morning tells you what to launch and how sure it is.",
		Example:           "  sgtune tune examples/quickstart.yaml\n  sgtune show quickstart --db examples/sgtune.db",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRun:  func(*cobra.Command, []string) { *started = true },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddCommand(
		newTuneCommand(), newInitCommand(), newCheckCommand(), newServeCommand(), newLsCommand(), newShowCommand(),
		newExportCommand(), newReportCommand(), newReclaimCommand(), newDiagnoseCommand(), newPredictCommand(), newReplayCommand(), newCompareCommand(), newSuggestCommand(), newBackupCommand(), newVersionCommand(), newSimServerCommand(), newNVMLProbeCommand(), newContainCommand(), newGuardCommand(), newStayCommand(),
	)
	completeHelp(root)
	return root
}
