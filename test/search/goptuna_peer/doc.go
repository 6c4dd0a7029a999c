// Command goptuna_peer has goptuna's own samplers play the problems of test/search, over the line protocol that
// `sgtune suggest` speaks, so that both are judged by the same judge:
//
//	goptuna_peer [tpe|random|cmaes]
package main
