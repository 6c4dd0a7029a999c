// Package hosts tests host.SSH and host.Remote against real OpenSSH servers on this machine: the conformance suite,
// directly and through a jump host, and what nights bring: dropped links, a restarted sshd, a killed sgtune, odd login shells,
// folders that cannot be used.
//
// It needs sshd (test/testbed/sshd.sh install). Without it, it is skipped; with SGTUNE_TESTBED=required it fails.
package hosts
