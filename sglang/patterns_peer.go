package sglang

// peerPatterns are how the ranks of one server lose each other: NCCL, gloo, the TCP store. Mostly they only
// follow from the death of one rank.
var peerPatterns = []pattern{
	{
		kind: "peer_wait", has: "waiting for clients", level: fatal,
		re: `(?i)timed out.*?waiting for clients\.?(?: (?P<joined>\d+)/(?P<expected>\d+) clients joined)?`,
	},
	{kind: "peer_wait", has: "client socket has timed out", level: fatal, re: `timed out.*?trying to connect`},
	{kind: "peer_wait", has: "client socket has failed to connect", level: fatal},
	{kind: "nccl_error", has: "NCCL error", level: fatal},
	{kind: "nccl_error", has: "DistBackendError", level: fatal, re: `^(?:torch\.distributed\.)?DistBackendError: `},
	{kind: "peer_lost", has: "Connection closed by peer", level: fatal},
	{kind: "peer_lost", has: "Connection closed by remote peer", level: fatal},
	{kind: "peer_lost", has: "Connection reset by peer", level: fatal},
	{kind: "peer_lost", has: "remote process exited", level: fatal},
	{kind: "peer_lost", has: "Connection was likely closed", level: fatal},
	{kind: "peer_lost", has: "TCPStore", level: fatal},
	{kind: "nccl_error", has: "Watchdog caught collective operation timeout", level: fatal, re: `timeout(?:.*?Timeout\(ms\)=(?P<nccl_timeout_ms>\d+))?`},
	{kind: "nccl_error", has: "ncclUnhandledCudaError", level: fatal},
	{kind: "nccl_error", has: "ncclSystemError", level: fatal},
	{kind: "nccl_error", has: "ncclInternalError", level: fatal},
	{kind: "nccl_error", has: "ncclRemoteError", level: fatal},
	{kind: "nccl_error", has: "ncclInvalidUsage", level: fatal},
	{kind: "nccl_error", has: "ncclInvalidArgument", level: fatal},
	{kind: "nccl_error", has: "watchdog got stuck for", level: fatal},
	{kind: "nccl_error", has: "NCCL communicator was aborted", level: fatal},
	{kind: "nccl_warn", has: "NCCL WARN", level: note}, // healthy starts print some
	{kind: "peer_lost", has: "DistNetworkError", level: fatal},
	{kind: "peer_lost", has: "DistStoreError", level: fatal},
}
