// Package nights drives the real program over whole studies on the simulated host: the quickstart with its promises, a
// kill at any instant, a thousand trials in one process, GPUs that somebody else holds, reclaim through a fake NVML.
//
// It holds tests only (make test-nights; the long ones: make test-long). Reading order: program_test.go, which builds the
// program and reads its database, then a test at a time. What needs no processes runs in virtual time: ./virtual.
package nights
