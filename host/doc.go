// Package host runs SGLang servers on a machine and reads what they hold there: processes, GPU
// memory, host memory, ports.
//
// It is not a process supervisor (nothing is restarted), it knows nothing of SGLang, trials or
// studies, and it decides nothing about them: package trial reads its facts and judges.
//
// Reading order: host.go (the one interface and its words), local.go (this machine), process.go
// (a process started here), found.go (a process found again by its marker), group.go (how all of
// them are ended), proc.go (what /proc says), simulated.go (a pretended 8-GPU machine around real
// local processes), lease.go, port.go, meminfo.go and cgroup.go, probe.go and nvml.go (GPU facts
// from a subprocess, because a driver can hang or kill its caller), smi.go (the same by nvidia-smi), gpu_facts.go (which of
// the two), gpu_judge.go (what the facts mean: pure functions), energy.go (what they use), run.go (before and after
// commands). A machine elsewhere: remote.go (the host), remote_call.go and remote_session.go (how it is asked), remote_link.go and
// ssh.go (how it is reached), serve.go (what answers there), keep.go (the parent of a process there), serve_lease.go and
// serve_hold.go (the lease that outlives a link).
//
// Three rules hold everywhere:
//
//   - A zombie is gone. In a container without a reaping pid 1 it may stay for ever.
//
//   - A pid alone proves nothing. A process is signalled only while its start time still matches.
//
//   - The death of sgtune kills nobody. Servers live in sessions of their own and carry
//     SGTUNE_TRIAL=<id>; the next sgtune finds and ends them:
//
//     left, err := h.Find(ctx, "")          // everything marked
//     for _, p := range left {
//     err := p.Stop(ctx, 0)             // SIGKILL, then wait until it is gone
//     }
package host
