package host

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// SlurmRequest is what a job asks its site for. Empty values are left to the site.
type SlurmRequest struct {
	Name      string // of the job, and its comment: it leads back to the job when sbatch's answer was lost
	Partition string
	Account   string
	Gres      string        // "gpu:h200:8"
	CPUs      int           // processors; 0 = as the site has it, which may be one
	Memory    int64         // bytes, rounded up to MiB
	TimeLimit time.Duration // rounded up to seconds
	Work      string        // folder on the shared file system, absolute
}

// args are the options of sbatch.
func (r SlurmRequest) args() ([]string, error) {
	if !slurmName.MatchString(r.Name) {
		return nil, fmt.Errorf("%q is no name for a Slurm job", r.Name)
	}
	// sbatch fills in what begins with % in the name of the output file, and takes \ off.
	if !path.IsAbs(r.Work) || strings.ContainsAny(r.Work, "%\\\n\x00") {
		return nil, fmt.Errorf("host.work_dir %q cannot be used with Slurm: give an absolute path on the file system that the nodes share, without %% and \\", r.Work)
	}
	args := []string{
		"--parsable", "--no-requeue", "--nodes=1", "--ntasks=1", "--job-name=" + r.Name, "--comment=" + r.Name,
		"--output=" + path.Join(r.Work, "job", r.Name+"-%j.out"), "--open-mode=append", "--chdir=/", "--export=ALL",
	}
	for _, o := range []struct{ name, value string }{
		{"partition", r.Partition}, {"account", r.Account}, {"gres", r.Gres},
	} {
		if o.value != "" {
			args = append(args, "--"+o.name+"="+o.value)
		}
	}
	if r.CPUs > 0 {
		args = append(args, fmt.Sprintf("--cpus-per-task=%d", r.CPUs))
	}
	if r.Memory > 0 {
		args = append(args, fmt.Sprintf("--mem=%dM", (r.Memory+1<<20-1)>>20))
	}
	if r.TimeLimit > 0 {
		s := int64((r.TimeLimit + time.Second - 1) / time.Second)
		args = append(args, fmt.Sprintf("--time=%d-%02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60))
	}
	return args, nil
}

// slurmFolder is what a job and sgtune tell each other, on the shared file system. Its files:
//
//	ask/RUN   a keeper is wanted for the folder RUN of a started command (ServeOptions.Ask)
//	beat      a sgtune is connected to the node
//	begun     job, node and time (s since 1970) at which the batch script began
//	done      the job is not needed any more
//	why       why the batch script is about to end what was started: done, term, silence
//	rc        the same once it has ended, when it began and when it ended
//	trouble   messages of the keepers
func slurmFolder(work, name string) string { return path.Join(work, "job", name) }

// slurmScript is the batch script: it keeps the node for one trial. What the trial starts there is a child of this
// script and of no step, because Slurm ends a step with all its processes when its srun is gone. TERM, which Slurm sends
// before it kills, is passed on to the groups of what was started; Slurm itself tells it to this shell alone.
//
// A group is signalled only while its keeper lives: a keeper stays until the group is empty, so the number still means
// that group. Waiting is measured by the time since the machine was started, which nobody sets.
const slurmScript = `#!/bin/sh
J=FOLDER
W=WORK
A=AGENT
patience=PATIENCE
grace=GRACE
umask 077
mkdir -p "$J/ask" || exit 73
began=$(date +%s)
tell() { printf '%s\n' "$2" >"$J/.$1.$$" && mv -f "$J/.$1.$$" "$J/$1"; }
runs=''
why=''
living() { for r in $runs; do kill -0 "${r##*:}" 2>/dev/null && return 0; done; return 1; }
signal() {
  for r in $runs; do
    kill -0 "${r##*:}" 2>/dev/null || continue
    d=$W/run/${r%:*}
    grep -q '"group_gone":true' "$d/rc" 2>/dev/null && continue
    g=$(sed -n 's/^{"boot_id":"[^"]*","pid":[0-9]*,"pgid":\([0-9][0-9]*\),.*/\1/p' "$d/id" 2>/dev/null)
    [ -z "$g" ] || kill -s "$1" -- "-$g" 2>/dev/null
  done
}
clock() { read -r now _ </proc/uptime; now=${now%%.*}; }
nap() { { sleep 0.2 2>/dev/null || sleep 1; } & wait $!; }
trap 'why=term' TERM INT
trap : HUP
tell begun "${SLURM_JOB_ID:-0} ${SLURMD_NODENAME:-$(uname -n)} $began"
clock
heard=$now
while [ -z "$why" ]; do
  for f in "$J"/ask/*; do
    [ -f "$f" ] || continue
    n=${f##*/}
    rm -f "$f"
    "$A" keep "$W/run/$n" </dev/null >/dev/null 2>>"$J/trouble" &
    runs="$runs $n:$!"
  done
  clock
  if [ -e "$J/beat" ]; then rm -f "$J/beat"; heard=$now; fi
  if [ $patience -gt 0 ] && [ $((now - heard)) -gt $patience ]; then why=silence; fi
  [ ! -e "$J/done" ] || why='done'
  nap
done
[ ! -e "$J/done" ] || why='done'
for s in TERM KILL; do
  signal $s
  clock
  end=$((now + grace))
  while living && [ "$now" -lt "$end" ]; do nap; clock; done
done
tell rc "$why $began $(date +%s)"
exit 0
`

// slurmGrace is how long the batch script waits after TERM, and again after KILL.
const slurmGrace = 30 * time.Second

// batchScript fills in the script. Without a sgtune connected for longer than patience the job ends itself; 0 = never.
func batchScript(r SlurmRequest, agent string, patience time.Duration) string {
	return strings.NewReplacer(
		"FOLDER", shellQuote(slurmFolder(r.Work, r.Name)), "WORK", shellQuote(r.Work), "AGENT", shellQuote(agent),
		"PATIENCE", fmt.Sprint(int64(patience/time.Second)), "GRACE", fmt.Sprint(int64(slurmGrace/time.Second)),
	).Replace(slurmScript)
}
