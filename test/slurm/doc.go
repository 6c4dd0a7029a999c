// Package slurm tests host.Slurm against a real Slurm on this machine: two nodes with fake GPUs.
//
// It needs Slurm's daemons (test/testbed/slurm.sh install) and root. Without them it is skipped; with
// SGTUNE_TESTBED=required it fails.
package slurm
