// Package hosttest is the conformance suite for kinds of host.Host: one list of tests that each kind passes, and the
// programs they start, played by the test binary itself; and what the slow tiers of hosts share: testbeds and whole studies. It is
// imported by tests only.
//
// Reading order: suite.go (the fixture), cells.go (the list), space.go and seams.go (how a fault is brought about where
// nobody else has it), start.go, stop.go, facts.go, way.go, machine.go, reboot.go, reuse.go and tuners.go (the tests),
// helper.go (the programs), agent.go (the test binary as sgtune-agent). Of the slow tiers: build.go and embed.go (the
// programs), ports.go, study.go and shown.go (a study that the built sgtune runs), failures.go.
package hosttest
