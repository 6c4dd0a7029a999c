package sglang

import (
	"slices"
	"strconv"
	"strings"
)

// RunArg is one argument of docker run or podman run, which spell them alike.
type RunArg struct {
	Name  string   // in its long spelling, where it has one: --memory for -m
	Value string   // "" where it takes none
	Words []string // how it is written; a member of a cluster like -itv as it is written alone
	// From and To are the words of the whole that it stands in: From is the first, To the one after the last.
	From, To int
}

// runSwitches are the flags that take no value; every other one takes one.
var runSwitches = []string{
	"-d", "--detach", "--disable-content-trust", "--help", "--init", "-i", "--interactive", "--no-healthcheck", "--oom-kill-disable", "--privileged",
	"-P", "--publish-all", "-q", "--quiet", "--read-only", "--rm", "--sig-proxy", "-t", "--tty", "--use-api-socket",
	"--env-host", "--http-proxy", "--no-hosts", "--no-hostname", "--passwd", "--read-only-tmpfs", "--replace", "--rmi", "--rootfs", "--tls-verify", "--unsetenv-all",
}

var shortRun = map[string]string{
	"-d": "--detach", "-i": "--interactive", "-t": "--tty", "-P": "--publish-all", "-p": "--publish", "-q": "--quiet", "-a": "--attach", "-l": "--label",
	"-e": "--env", "-m": "--memory", "-v": "--volume", "-u": "--user", "-w": "--workdir", "-h": "--hostname", "-c": "--cpu-shares", "--net": "--network",
}

// RunArgs takes the arguments of run apart, up to the first word that is none: in a whole command line that is the
// image, or "--" before it. rest is its index, len(words) when there is none.
func RunArgs(words []string) (args []RunArg, rest int) {
	for rest < len(words) {
		word := words[rest]
		if len(word) < 2 || word[0] != '-' || word == "--" {
			return args, rest
		}
		if strings.HasPrefix(word, "--") {
			args = append(args, longArg(words, rest))
		} else {
			args = append(args, shortArgs(words, rest)...)
		}
		rest = args[len(args)-1].To
	}
	return args, rest
}

// longArg is the argument in words[at]: --name=value, or --name and a value in the next word.
func longArg(words []string, at int) RunArg {
	name, value, inline := strings.Cut(words[at], "=")
	a := RunArg{Name: longRun(name), Value: value, From: at, To: at + 1}
	if !inline && !slices.Contains(runSwitches, name) && at+1 < len(words) {
		a.Value, a.To = words[at+1], at+2
	}
	a.Words = words[a.From:a.To]
	return a
}

// shortArgs are those in words[at]: -d, -it, -m4g, -m 4g, -itv /a:/b.
func shortArgs(words []string, at int) []RunArg {
	var args []RunArg
	letters := words[at][1:]
	for i := range len(letters) {
		if c := letters[i] | 0x20; c < 'a' || c > 'z' { // no flag of any runtime; it takes the word alone
			return []RunArg{{Name: words[at], Words: words[at : at+1], From: at, To: at + 1}}
		}
		name := "-" + letters[i:i+1]
		a := RunArg{Name: longRun(name), Words: []string{name}, From: at, To: at + 1}
		if slices.Contains(runSwitches, name) {
			args = append(args, a)
			continue
		}
		if value := letters[i+1:]; value != "" {
			a.Value, a.Words = strings.TrimPrefix(value, "="), []string{name + value}
		} else if at+1 < len(words) {
			a.Value, a.To = words[at+1], at+2
			a.Words = append(a.Words, a.Value)
		}
		args = append(args, a)
		break
	}
	for i := range args { // all of a cluster stand in the same words
		args[i].To = args[len(args)-1].To
	}
	return args
}

func longRun(name string) string {
	if l, ok := shortRun[name]; ok {
		return l
	}
	return name
}

// What sgtune itself does to a container, so that an argument must not.
const (
	itsLife    = "sgtune removes the container itself, once it has written down how it ended"
	itsName    = "sgtune names and labels the container itself, to find it again after a crash"
	itsStart   = "sgtune runs the container in the background itself and reads its log"
	itsNetwork = "the container has the machine's own network: sgtune chooses the port, and a proxy in between would be measured, too"
	staysDead  = "a server that dies must stay dead, or its failure is not seen"
)

// refusedRun are arguments of run that would break what sgtune promises, and why.
var refusedRun = map[string]string{
	"--rm": itsLife, "--rmi": itsLife, "--restart": staysDead, "--replace": itsName,
	"--name": itsName, "--cidfile": "the second trial would find the file of the first", "--label-file": itsName,
	"--detach": itsStart, "--interactive": itsStart, "--tty": itsStart, "--detach-keys": itsStart, "--attach": itsStart, "--help": itsStart,
	"--publish": itsNetwork, "--publish-all": itsNetwork, "--pod": itsNetwork,
	"--oom-kill-disable": "a server that reaches its limit would hang instead of ending", "--timeout": "sgtune has its own limits (server.ready_timeout, budget)",
	"--health-on-failure": staysDead, "--rootfs": "server.container.image names what runs",
}

// Refused says why the argument would break what sgtune promises of a trial's container, "" when it may stay.
func (a RunArg) Refused() string {
	switch variable, _, _ := strings.Cut(a.Value, "="); {
	case a.Name == "--network" && a.Value != "host":
		return itsNetwork
	case a.Name == "--log-driver" && a.Value == "none":
		return "sgtune reads the log with logs"
	case a.Name == "--label" && strings.HasPrefix(a.Value, "sgtune."), a.Name == "--env" && strings.HasPrefix(variable, "SGTUNE_"):
		return itsName
	}
	return refusedRun[a.Name]
}

// RunBytes reads a size as the runtimes do: 400g is 400 x 2^30 bytes.
func RunBytes(text string) (int64, bool) {
	text = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text), "b"), "i")
	shift := 0
	if i := strings.IndexAny(text, "kmgtp"); i >= 0 && i == len(text)-1 {
		shift, text = 10*(1+strings.IndexByte("kmgtp", text[i])), text[:i]
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(v >= 0 && v <= 1<<40) || v*float64(int64(1)<<shift) > 1<<62 {
		return 0, false
	}
	return int64(v * float64(int64(1)<<shift)), true
}
