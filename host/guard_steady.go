package host

import "golang.org/x/sys/unix"

// guardNice is the niceness of a guard's process: it needs little, but at once.
const guardNice = -10

// steady has this process, which is a guard's and leads its process group, run before those that keep all cores busy, and
// not wait for a disk when the page cache is short, which it is just before memory runs out: its pages stay in memory
// once they were used. Both need a privilege; without it a guard is as quick as any other process.
func steady() {
	_ = unix.Setpriority(unix.PRIO_PGRP, 0, guardNice)
	_ = unix.Mlockall(unix.MCL_CURRENT | unix.MCL_ONFAULT)
}
