// Package replay runs the built `sgtune replay` against a mock server that counts what really happened, and
// compares the two.
package replay
