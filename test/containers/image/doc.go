// Program image is what the container images of the tests hold: sgtune's simulated server and a few ways to end, static,
// because an image FROM scratch has nothing else. It takes the words that sgtune takes (sim-server and its flags), and
// those below.
package main
