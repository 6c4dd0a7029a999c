// Command tcpbound is the lower bound for a streaming load generator on this machine.
// It opens all connections first, writes one prepared request per stream, and reads the
// answer from the socket. With -parse it also finds each SSE event and keeps one
// timestamp per event; without it, it only finds the end of the stream.
// It prints one JSON line. It is a measuring stick, not a client: no errors are retried
// and only the framing that mockllm writes is understood.
package main
