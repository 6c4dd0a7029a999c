// Package containers tests servers in containers with a real runtime: Debian's podman, with an image FROM scratch that
// holds a static simulated server. Where podman cannot run a container (no root, a machine that forbids it), a fake
// runtime (internal/hosttest) takes its place, whose containers are real processes. SGTUNE_CONTAINERS says which:
//
//	podman  the real one, or the tests fail
//	fake    the fake one
//	try     the real one where it runs, else the fake one
//
// The path that was taken is printed first.
package containers
