// Command sgtune-agent is sgtune's part on the machine of a server that is reached over a link. It replays a load at
// the server and streams what it measures (package internal/replayjob), so that no network link is inside a latency; and it serves
// the machine to a host.Remote (host.Serve), as the keeper of the processes it starts (host.KeepMain) and the holder
// of the machine's lease (host.HoldMain). It is one static file without cgo and reads no configuration; it writes only
// into the folder it is given, and into the state folder where the lease lies.
package main
