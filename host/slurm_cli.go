package host

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// slurmCallTime bounds one call. A client of a controller that is down gives up after about nine seconds by itself.
const slurmCallTime = time.Minute

var (
	// ErrSlurmUnclear is wrapped by errors after which nothing is known of a job: the controller is down or busy, or the
	// way to it is. Nothing has failed by that; asking again is right.
	ErrSlurmUnclear = errors.New("Slurm gives no answer")
	// ErrNoJob is wrapped by the error for a job that Slurm does not know: it ended some minutes ago (MinJobAge), or
	// was never there.
	ErrNoJob = errors.New("Slurm knows no such job")
	// ErrSlurmRefused is wrapped by the error for a job that Slurm will not take.
	ErrSlurmRefused = errors.New("Slurm refuses the job")
)

// SlurmCLI asks a site's Slurm by its own programs, sbatch, squeue, scontrol and scancel. Text is read, not JSON: its
// shape has been the same since long before 22.05, where scontrol has no JSON at all.
type SlurmCLI struct {
	Runner SlurmRunner
}

// slurmName is what names of jobs are made of: nothing that squeue takes for a list, or that looks like a field.
var slurmName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// Submit hands in a batch script under the options of r. It does not look whether there is such a job already. An error
// that wraps ErrSlurmUnclear leaves open whether the job was taken: look for it by its name.
func (c SlurmCLI) Submit(ctx context.Context, r SlurmRequest, script string) (SlurmJob, error) {
	args, err := r.args()
	if err != nil {
		return SlurmJob{}, err
	}
	output, status, err := c.run(ctx, script, append([]string{"sbatch"}, args...)...)
	if err != nil {
		return SlurmJob{}, err
	}
	if id, cluster, ok := parseSlurmSubmitted(output); ok && status == 0 {
		return SlurmJob{ID: id, Cluster: cluster, Name: r.Name, State: "PENDING", Code: -1}, nil
	}
	if status == 0 || slurmDown(output) {
		return SlurmJob{}, fmt.Errorf("sbatch: %w: %s", ErrSlurmUnclear, slurmSaid(output))
	}
	return SlurmJob{}, fmt.Errorf("sbatch: %w: %s", ErrSlurmRefused, slurmSaid(output))
}

// Job asks for one job of which the number is known.
func (c SlurmCLI) Job(ctx context.Context, job SlurmJob) (SlurmJob, error) {
	output, status, err := c.run(ctx, "", slurmCall(job, "scontrol", "show", "job", "-o", job.ID)...)
	if err != nil {
		return SlurmJob{}, err
	}
	if status != 0 {
		return SlurmJob{}, slurmFailure("scontrol", output)
	}
	now, err := parseSlurmJob(output)
	if err != nil {
		return SlurmJob{}, fmt.Errorf("%w: %w", ErrSlurmUnclear, err)
	}
	if now.ID != job.ID {
		return SlurmJob{}, fmt.Errorf("%w: scontrol was asked for job %s and tells of %s", ErrSlurmUnclear, job.ID, now.ID)
	}
	now.Cluster = job.Cluster
	return now, nil
}

// Named lists the user's own jobs of a name, the newest first; also those that have ended, as long as Slurm
// remembers them.
func (c SlurmCLI) Named(ctx context.Context, name string) ([]SlurmJob, error) {
	if !slurmName.MatchString(name) {
		return nil, fmt.Errorf("%q is no name for a Slurm job", name)
	}
	output, status, err := c.run(ctx, "", "squeue", "-h", "--me", "-t", "all", "--name="+name, "-o", slurmQueueFormat)
	if err != nil {
		return nil, err
	}
	if status != 0 {
		return nil, slurmFailure("squeue", output)
	}
	return parseSlurmQueue(output), nil
}

// Cancel ends a job: Slurm sends TERM to its batch script, and KILL to all of it a while later (KillWait). A job that
// has ended, or that Slurm does not know any more, is no error; so for Finish and Kill.
func (c SlurmCLI) Cancel(ctx context.Context, job SlurmJob) error { return c.scancel(ctx, job) }

// Finish sends TERM to the batch script alone, which then has its own time to end what it started.
func (c SlurmCLI) Finish(ctx context.Context, job SlurmJob) error {
	return c.scancel(ctx, job, "--batch", "--signal=TERM")
}

// Kill sends KILL to all processes of a job at once.
func (c SlurmCLI) Kill(ctx context.Context, job SlurmJob) error {
	return c.scancel(ctx, job, "--full", "--signal=KILL")
}

func (c SlurmCLI) scancel(ctx context.Context, job SlurmJob, options ...string) error {
	output, status, err := c.run(ctx, "", slurmCall(job, "scancel", append(options, job.ID)...)...)
	if err != nil || status == 0 {
		return err
	}
	if err := slurmFailure("scancel", output); !errors.Is(err, ErrNoJob) {
		return err
	}
	return nil
}

// slurmCall names the cluster of a job where it has one.
func slurmCall(job SlurmJob, program string, args ...string) []string {
	argv := []string{program}
	if job.Cluster != "" {
		argv = append(argv, "-M", job.Cluster)
	}
	return append(argv, args...)
}

func (c SlurmCLI) run(ctx context.Context, stdin string, argv ...string) (string, int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, slurmCallTime, fmt.Errorf("%w within %s", ErrSlurmUnclear, slurmCallTime))
	defer cancel()
	output, status, err := c.Runner.RunCommand(ctx, argv, stdin)
	if errors.Is(err, ErrUnreachable) { // the way to Slurm is down, which says nothing of the job
		err = fmt.Errorf("%w: %w", ErrSlurmUnclear, err)
	}
	return output, status, err
}

// slurmFailure is the error of a client that ended with a status. Whatever it is not known for is unclear, never a
// failed job.
func slurmFailure(program, output string) error {
	kind := ErrSlurmUnclear
	for _, sign := range []string{"Invalid job id", "Job/step already completing or completed"} {
		if strings.Contains(output, sign) {
			kind = ErrNoJob
		}
	}
	return fmt.Errorf("%s: %w: %s", program, kind, slurmSaid(output))
}

// slurmDown reports whether sbatch failed for lack of a controller, and not for the job's sake.
func slurmDown(output string) bool {
	for _, sign := range []string{
		"Unable to contact slurm controller", "connect failure", "Connection refused", "timed out", "Zero Bytes",
		"Transport endpoint", "Communication connection failure", "standby mode", "temporarily unable to accept", "Connection reset",
		"authentication", "Munge", "munge", "Unable to establish",
	} {
		if strings.Contains(output, sign) {
			return true
		}
	}
	return false
}

// slurmSaid is the last word of a client, in one line.
func slurmSaid(output string) string {
	said := strings.TrimSpace(lastLine(strings.ToValidUTF8(output, "?")))
	if said == "" {
		return "it said nothing"
	}
	return fmt.Sprintf("%.300s", said)
}
