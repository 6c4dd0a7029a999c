package trial

import "fmt"

// ErrLeft is returned by Run and Recover when a person gave up waiting for a host that does not answer (host.ErrGivenUp):
// the trial's row stays as it is, running, and what it launched may still run. It is ErrStopped too.
var ErrLeft = fmt.Errorf("the host was left without cleaning up: %w", ErrStopped)

// leftBehind is ErrLeft with what may still run.
func leftBehind(t *Trial, why error) error {
	what := ""
	if t.Process.PID > 0 {
		what = fmt.Sprintf(" (pid %d may still run)", t.Process.PID)
	}
	return fmt.Errorf("trial %d%s: %w: %w", t.Number, what, ErrLeft, why)
}
