// Package freeport gives tests a port for a server that they start as another process. The usual way, to listen on
// port 0, close, and pass the number on, leaves a moment in which the system gives the number to somebody else: to
// another test's listener, or to a connection. Then the server ends with "address already in use", once in some
// thousand runs. Here the port stays bound until the test is over, without a listener: the system gives it to nobody
// else, while a server that asks for exactly this port gets it (SO_REUSEADDR, which Go and Python servers set).
//
// It is for tests only. The product asks its host for ports (host.Reach), since servers run elsewhere too.
package freeport
