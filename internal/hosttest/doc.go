// Package hosttest is the conformance suite for kinds of host.Host: one list of tests that each kind passes, and the
// programs they start, played by the test binary itself. It is imported by tests only.
//
// Reading order: suite.go (the list and the fixture), start.go, stop.go and facts.go (the tests), helper.go (the
// programs), agent.go (the test binary as sgtune-agent).
package hosttest
