package host

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Slurm's clients print notes and warnings wherever they like, and a login shell prints before them. So an answer is
// looked for line by line, in forms that nothing else has.

// slurmSubmitted is the line of sbatch --parsable: the number, and with --clusters the cluster.
var slurmSubmitted = regexp.MustCompile(`^([1-9][0-9]{0,17})(?:;([A-Za-z0-9_.-]+))?$`)

func parseSlurmSubmitted(text string) (id, cluster string, ok bool) {
	for line := range strings.Lines(text) {
		if m := slurmSubmitted.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			id, cluster, ok = m[1], m[2], true // the last one: a site's wrapper may print before
		}
	}
	return id, cluster, ok
}

// slurmQueueMark begins each line of slurmQueueFormat.
const slurmQueueMark = "sgtune|"

// slurmQueueFormat is for squeue -o: number, state, node, name, reason. The last may hold anything.
const slurmQueueFormat = slurmQueueMark + "%i|%T|%B|%j|%r"

// parseSlurmQueue reads the answer of squeue, the newest job first. Lines that are not of a job, and those of an array
// (which sgtune never submits), are passed over.
func parseSlurmQueue(text string) []SlurmJob {
	var jobs []SlurmJob
	for line := range strings.Lines(text) {
		_, rest, ok := strings.Cut(line, slurmQueueMark)
		f := strings.SplitN(strings.TrimRight(rest, "\r\n"), "|", 5)
		if !ok || len(f) < 5 || !slurmNumber(f[0]) || f[1] == "" {
			continue
		}
		jobs = append(jobs, SlurmJob{
			ID: f[0], State: slurmState(f[1]), Node: slurmWord(f[2]), Name: f[3], Reason: slurmWord(f[4]), Code: -1,
		})
	}
	slices.SortStableFunc(jobs, func(a, b SlurmJob) int { // numbers grow
		return -cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return jobs
}

// slurmKey begins a field of scontrol show job -o.
var slurmKey = regexp.MustCompile(`(?:^| )([A-Z][A-Za-z:/_-]*)=`)

// parseSlurmJob reads scontrol show job -o: one line of KEY=VALUE. A value may hold spaces, and so a text that looks
// like a field; the first field of a name counts, because those in which a user's text may stand come later, except
// JobName, which is checked when the job is made.
func parseSlurmJob(text string) (SlurmJob, error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "JobId=") {
			continue
		}
		fields := map[string]string{}
		at := slurmKey.FindAllStringSubmatchIndex(line, -1)
		for i, m := range at {
			end := len(line)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			if key := line[m[2]:m[3]]; !slurmHas(fields, key) {
				fields[key] = strings.TrimSpace(line[m[1]:end])
			}
		}
		return slurmJobOf(fields)
	}
	return SlurmJob{}, fmt.Errorf("scontrol says nothing of a job: %.200q", text)
}

func slurmHas(fields map[string]string, key string) bool { _, ok := fields[key]; return ok }

func slurmJobOf(fields map[string]string) (SlurmJob, error) {
	j := SlurmJob{
		ID: fields["JobId"], Name: fields["JobName"], State: slurmState(fields["JobState"]),
		Reason: slurmWord(fields["Reason"]), Node: slurmWord(fields["BatchHost"]), Code: -1,
	}
	if !slurmNumber(j.ID) || j.State == "" {
		return SlurmJob{}, fmt.Errorf("scontrol names no job or no state: JobId=%.50q JobState=%.50q", j.ID, fields["JobState"])
	}
	code, sig, _ := strings.Cut(fields["ExitCode"], ":")
	if n, err := strconv.Atoi(code); err == nil && n >= 0 {
		j.Code = n
	}
	if n, err := strconv.Atoi(sig); err == nil && n > 0 {
		j.Signal = n
	}
	if n, err := strconv.Atoi(fields["Restarts"]); err == nil && n > 0 {
		j.Restarts = n
	}
	return j, nil
}

// slurmState takes off what some versions add: "CANCELLED by 0", "CANCELLED+", a list of the state and its flags, of
// which the last says most ("RUNNING,COMPLETING").
func slurmState(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), " ")
	if i := strings.LastIndexByte(text, ','); i >= 0 {
		text = text[i+1:]
	}
	return strings.ToUpper(strings.TrimRight(text, "+"))
}

// slurmWord is a value that Slurm knows; it has several words for none.
func slurmWord(text string) string {
	text = strings.TrimSpace(text)
	switch text {
	case "None", "(null)", "N/A", "n/a", "(None)", "NULL":
		return ""
	}
	return text
}

func slurmNumber(text string) bool {
	return text != "" && len(text) < 19 && strings.Trim(text, "0123456789") == ""
}
