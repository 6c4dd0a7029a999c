// Package sglang holds the tier of tests that needs the real SGLang server on this machine's CPU.
// Only tests live here; `make test-sglang` installs the server and runs them.
package sglang
