// Package host runs SGLang servers on a machine and reads what they hold there: processes, GPU
// memory, host memory, ports.
//
// It is not a process supervisor (nothing is restarted but a Resident, the server left running at the end), it knows nothing of SGLang, trials or
// studies, and it decides nothing about them: package trial reads its facts and judges.
//
// Reading order: host.go (the one interface and its words), local.go (this machine), process.go
// (a process started here), found.go (a process found again by its marker), group.go (how all of
// them are ended), proc.go (what /proc says), remains.go (files that outlive them), leftovers.go (what reclaim shows), simulated.go (a pretended 8-GPU machine around real
// local processes), lease.go, port.go, meminfo.go and cgroup.go, probe.go and nvml.go (GPU facts
// from a subprocess, because a driver can hang or kill its caller), smi.go (the same by nvidia-smi), gpu_facts.go (which of
// the two), gpu_judge.go (what the facts mean: pure functions), energy.go (what they use), run.go (before and after
// commands). What ends a server in time: guard.go (one trial watched), guard_watch.go, guard_process.go (beside a local one),
// keep_guard.go (beside one over a link), guard_strangers.go (who else was there). A machine elsewhere: remote.go (the host), remote_call.go and remote_session.go (how it is asked), remote_link.go and
// ssh.go (how it is reached), serve.go (what answers there), keep.go (the parent of a process there), serve_lease.go and
// serve_hold.go (the lease that outlives a link). A server that stays when all is over: resident.go, resident_order.go (its folder,
// how its keeper is started), resident_systemd.go (as a unit), resident_keep.go (the keeper).
//
// Three rules hold everywhere:
//
//   - A zombie is gone. In a container without a reaping pid 1 it may stay for ever.
//
//   - A pid alone proves nothing. A process is signalled only while its start time still matches.
//
//   - The death of sgtune kills nobody, but for a guard that waited long enough for it. Servers live in sessions of their own and carry
//     SGTUNE_TRIAL=<id>; the next sgtune finds and ends them:
//
//     left, err := h.Find(ctx, "")          // everything marked
//     for _, p := range left {
//     err := p.Stop(ctx, 0)             // SIGKILL, then wait until it is gone
//     }
package host
