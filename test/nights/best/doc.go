// Command best finds by brute force what the nights of ./test/nights/virtual are judged by: the best
// configuration of a study on its simulated machine, by noise-free launches in virtual time (some 20 ms each) and
// a climb from the best of them. It takes a quarter of an hour for each study:
//
//	go run ./test/nights/best -commit "$(git rev-parse --short HEAD)" -out test/nights/virtual/testdata/best examples/kimi.yaml
package main
