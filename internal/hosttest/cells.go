package hosttest

import (
	"testing"
)

// cell is one test of the suite.
type cell struct {
	name   string
	test   func(*testing.T, Fixture)
	before func(t *testing.T, dir string) // prepares the folder before its host is made; nil = nothing
	space  space                          // what it must not share with other tests
}

// The cells of docs/reliability.md that a kind of host cannot do, or that only some of the machinery needs.
const (
	cellLink    = "link dropped for 30 s"
	cellRestart = "sshd restarted"
	cellSelf    = "sgtune itself is never found"
)

// faults are the cells of docs/reliability.md, in its order.
var faults = []cell{
	{name: "start", test: identity},
	{name: "log follow", test: logFollow},
	{name: "exit facts", test: exitFacts},
	{name: "stop with TERM ignored", test: termIgnored},
	{name: "setsid child", test: stopTree},
	{name: "kill -9 of sgtune", test: deadController},
	{name: cellLink, test: linkDropped, space: ownServers},
	{name: cellRestart, test: serverRestarted, space: ownServers},
	{name: "disk full on the host", test: diskFull, space: ownMounts},
	{name: "clock jump", test: clockJump, before: oddDate},
	{name: "host rebooted", test: rebooted, before: firstBoot},
	{name: "pid reused", test: pidReused, space: ownPIDs},
	{name: "two tuners at once", test: twoTuners},
}

// details are the other promises of host.Host.
var details = []cell{
	{name: "a program that does not exist", test: noProgram},
	{name: "argv arrives intact", test: argvIntact},
	{name: "environment", test: environment},
	{name: "log by offset", test: logOffset},
	{name: "log is appended and starts at this process", test: logAppend},
	{name: "started process is found by its marker", test: foundByMarker},
	{name: "renamed process is found by its sister", test: renamed},
	{name: cellSelf, test: neverSelf},
	{name: "grace lets it end by itself", test: graceful},
	{name: "children of a dead leader", test: orphans},
	{name: "stop is bounded by its context", test: stopBounded},
	{name: "stop twice", test: stopTwice},
	{name: "port", test: port},
	{name: "lease is exclusive", test: leaseExclusive},
	{name: "usage", test: usage},
	{name: "run", test: run},
	{name: "run too long", test: runTooLong},
}

// notApplicable tells, by Suite.Kind and cell, why a kind of host cannot be asked for something.
var notApplicable = map[string]map[string]string{
	"local":        {cellLink: "there is no link", cellRestart: "there is no server on the way"},
	"simulated":    {cellLink: "there is no link", cellRestart: "there is no server on the way"},
	"remote":       {cellRestart: "the link is a child of sgtune, without a server"},
	"gpu-host":     {cellSelf: elsewhere},
	"gpu-via-jump": {cellSelf: elsewhere},
	"slurm":        {cellSelf: elsewhere},
}

const elsewhere = "sgtune is no process of this host; in the test it runs beside it and would be found, rightly"
