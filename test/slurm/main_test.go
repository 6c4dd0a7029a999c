package slurm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// Where the testbed lies; in the environment because helper programs that play another sgtune need it, too.
const (
	bedEnv   = "SGTUNE_TEST_BED"   // folder of the cluster
	agentEnv = "SGTUNE_TEST_AGENT" // the built agent
)

func TestMain(m *testing.M) { hosttest.Main(m, newHost, build, serve) }

// why is why there is no cluster, "" when there is one.
var why string

// build builds the agent.
func build() (func(), error) { return hosttest.BuildAgent("sgtune-slurm-", bedEnv, agentEnv) }

// serve starts the cluster.
func serve() (func(), error) {
	if testing.Short() {
		return func() {}, nil
	}
	for _, program := range []string{"slurmctld", "slurmd", "sbatch", "munged"} {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if _, err := os.Stat("/usr/sbin/" + program); err != nil {
			why = "no Slurm here: run test/testbed/slurm.sh install"
		}
	}
	if os.Getuid() != 0 {
		why = "Slurm's daemons need root"
	}
	if why != "" && os.Getenv("SGTUNE_TESTBED") == "required" {
		return func() {}, fmt.Errorf("%s", why)
	} else if why != "" {
		return func() {}, nil
	}
	port, free, err := hosttest.Ports(30000)
	if err != nil {
		return free, err
	}
	nodes := 7 // a whole study has two to itself, and the time limit one
	if hosttest.Alone() {
		nodes = 2
	}
	for name, value := range map[string]string{
		"SLURM_TB_NODES": fmt.Sprint(nodes),
		"SLURM_TB_DIR":   bed("slurm"), "SLURM_TB_PORT": fmt.Sprint(port), "SLURM_TB_REST": "0", "SLURM_CONF": bed("slurm/slurm.conf"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return free, err
		}
	}
	return func() { _ = testbed("purge"); free() }, testbed("start")
}

// controllerSaid is the end of the controller's log.
func controllerSaid() string {
	b, err := os.ReadFile(bed("slurm/log/slurmctld.log"))
	if err != nil {
		return err.Error()
	}
	return "the controller's log ends with:\n" + string(b[max(0, len(b)-6000):])
}

func bed(name string) string { return filepath.Join(os.Getenv(bedEnv), name) }

func testbed(verb string) error {
	cmd := exec.Command("../testbed/slurm.sh", verb)
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("slurm.sh %s: %w: %s", verb, err, out)
	}
	return nil
}

// need skips a test that cannot run here.
func need(t *testing.T) {
	t.Helper()
	hosttest.Watch(t)
	if testing.Short() {
		t.Skip("a real cluster: make test-all runs it")
	}
	if why != "" {
		t.Skip(why)
	}
}

// options are those of the trial that a folder stands for.
func options(dir string) host.SlurmOptions {
	sum := sha256.Sum256([]byte(dir))
	return host.SlurmOptions{
		Login: login(dir), Agent: os.Getenv(agentEnv), Clock: hosttest.Clock(dir, 1),
		Request: host.SlurmRequest{
			Name: fmt.Sprintf("sgtune-%x", sum[:8]), Partition: "gpu", Memory: 2 << 30, TimeLimit: 5 * time.Minute, Work: filepath.Join(dir, "work"),
		},
		Lessor:   host.NewLocal(host.LocalOptions{StateDir: dir, BootIDFile: hosttest.BootIDFile(dir)}),
		Patience: time.Minute,
	}
}

// ending gives the node back when the test is over. A helper that plays another sgtune does not.
type ending struct{ *host.Slurm }

// Close implements io.Closer.
func (e ending) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := e.End(ctx); err != nil {
		return err
	}
	return e.Slurm.Close()
}

func newHost(_, dir string) host.Host {
	s, err := host.NewSlurm(options(dir))
	if err != nil {
		panic(err) // of a test: there is no t in helper programs
	}
	if os.Getenv(hosttest.HelperEnv) != "" {
		return s
	}
	return ending{s}
}
