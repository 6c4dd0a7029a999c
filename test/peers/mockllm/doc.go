// Command mockllm is a fast mock of an LLM server with streaming endpoints, used to
// measure load generators. It speaks plain HTTP/1.1 with keep-alive over its own
// connection loop (requests are parsed by net/http, responses are pre-encoded bytes),
// so that on a small machine the client under test, not the mock, is the limit.
//
//	POST /v1/completions, /v1/chat/completions   OpenAI format (stream or not)
//	POST /generate                               SGLang format (stream or not)
//	GET  /v1/models /health /server_info ...     enough for clients to start
//	GET  /mock/stats                             the truth, as JSON
//	POST /mock/reset                             clears the truth
//
// The truth is measured at the socket: TTFT runs from the moment the request body was
// read to the moment just before the first token is written; ITL is the distance
// between the starts of consecutive token writes of one stream.
//
// Reading order: main.go (flags), conn.go (a connection and its requests), generate.go (one answer), script.go (what
// is sent, encoded beforehand), body.go (what is read of a request), stats.go and hist.go (the truth).
package main
