package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is USER_HZ, which Linux has at 100 for all it tells to programs.
const ticksPerSecond = 100

// startedAt is when a process was started, by the time of day.
func startedAt(s procStat) (time.Time, error) {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}, err
	}
	age := time.Duration(up.Nano()) - time.Duration(s.startTicks)*time.Second/ticksPerSecond
	return time.Now().Add(-age), nil
}

// openRemains are the files of a living process that may outlive it.
func openRemains(pid int, listening map[string]string) []RemainsOf {
	var info unix.Stat_t
	if unix.Stat(procPath(pid, ""), &info) != nil {
		return nil
	}
	var list []RemainsOf
	held := heldFiles(pid)
	for _, path := range append(mappedShm(pid), openShm(pid)...) {
		if !shmNamed(path) {
			continue
		}
		// In a mount namespace of its own the same path is another file.
		if f, ok := remainsAt(path); ok && held[f.file()] && f.UID == info.Uid {
			list = append(list, f)
		}
	}
	for _, inode := range openSockets(pid) {
		path, ok := listening[inode]
		if !ok {
			continue
		}
		if f, ok := remainsAt(path); ok && f.Socket && f.UID == info.Uid {
			list = append(list, f)
		}
	}
	return list
}

// shmNamed reports whether a path is that of shared memory with a name as SGLang and its libraries give it.
func shmNamed(path string) bool {
	name, ok := strings.CutPrefix(path, shmFolder+"/")
	if !ok || strings.Contains(name, "/") {
		return false
	}
	for _, prefix := range shmNames {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// remainsAt describes the plain file or socket at a path; false where there is none, or where its birth is not known.
func remainsAt(path string) (RemainsOf, bool) {
	var info unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &info) != nil {
		return RemainsOf{}, false
	}
	kind := info.Mode & unix.S_IFMT
	if kind != unix.S_IFREG && kind != unix.S_IFSOCK {
		return RemainsOf{}, false
	}
	born := info.Btime
	if info.Mask&unix.STATX_BTIME == 0 { // a file system that does not tell
		if kind == unix.S_IFREG {
			return RemainsOf{}, false
		}
		born = info.Mtime // nothing is ever written to the file of a socket
	}
	return RemainsOf{
		Path: path, Device: unix.Mkdev(info.Dev_major, info.Dev_minor), Inode: info.Ino, Born: time.Unix(born.Sec, int64(born.Nsec)).UTC(),
		UID: info.Uid, Socket: kind == unix.S_IFSOCK, Bytes: int64(info.Blocks) * 512,
	}, true
}

// made reports whether the file is still the one that was noted, and not older than the processes that used it.
func (r RemainsOf) made(since time.Time) bool {
	now, ok := remainsAt(r.Path)
	return ok && now.same(r) && !r.Born.Before(since)
}

// fileOnDevice names a file whatever its path.
type fileOnDevice struct {
	major, minor uint32
	inode        uint64
}

func (r RemainsOf) file() fileOnDevice {
	return fileOnDevice{unix.Major(r.Device), unix.Minor(r.Device), r.Inode}
}

// heldFiles are the files that a process has open or mapped; nil when they cannot be read.
func heldFiles(pid int) map[fileOnDevice]bool {
	maps, err := os.ReadFile(procPath(pid, "maps"))
	if err != nil {
		return nil
	}
	held := parseMaps(maps)
	for _, link := range fdLinks(pid) {
		var info unix.Stat_t
		if unix.Stat(link, &info) == nil {
			held[fileOnDevice{unix.Major(uint64(info.Dev)), unix.Minor(uint64(info.Dev)), info.Ino}] = true
		}
	}
	return held
}

// parseMaps reads the files of /proc/PID/maps: address, permissions, offset, device, inode, path.
func parseMaps(maps []byte) map[fileOnDevice]bool {
	held := map[fileOnDevice]bool{}
	for line := range bytes.Lines(maps) {
		f := bytes.Fields(line)
		if len(f) < 6 {
			continue // anonymous
		}
		major, minor, _ := strings.Cut(string(f[3]), ":")
		a, err1 := strconv.ParseUint(major, 16, 32)
		b, err2 := strconv.ParseUint(minor, 16, 32)
		inode, err3 := strconv.ParseUint(string(f[4]), 10, 64)
		if err1 == nil && err2 == nil && err3 == nil && inode != 0 {
			held[fileOnDevice{uint32(a), uint32(b), inode}] = true
		}
	}
	return held
}

func fdLinks(pid int) []string {
	links, _ := filepath.Glob(procPath(pid, "fd/*")) // its only error is a malformed pattern
	return links
}

func openShm(pid int) []string {
	var paths []string
	for _, link := range fdLinks(pid) {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, shmFolder+"/") {
			paths = append(paths, target)
		}
	}
	return paths
}

func mappedShm(pid int) []string {
	maps, err := os.ReadFile(procPath(pid, "maps"))
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	var paths []string
	for line := range bytes.Lines(maps) {
		if i := bytes.Index(line, []byte(shmFolder+"/")); i > 0 {
			if path := strings.TrimSuffix(string(line[i:]), "\n"); !seen[path] {
				seen[path] = true
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func openSockets(pid int) []string {
	var inodes []string
	for _, link := range fdLinks(pid) {
		target, err := os.Readlink(link)
		if err != nil {
			continue
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	return inodes
}

// unixListeners are the paths of listening unix sockets by the sockets' inodes.
func unixListeners() map[string]string {
	table, err := os.ReadFile("/proc/self/net/unix")
	if err != nil {
		return nil
	}
	return parseUnixListeners(table)
}

// acceptsConnections is the flag __SO_ACCEPTCON of a listening socket.
const acceptsConnections = 0x10000

// parseUnixListeners reads the table of /proc/net/unix: number, references, protocol, flags, type, state, inode, path.
func parseUnixListeners(table []byte) map[string]string {
	found := map[string]string{}
	for line := range bytes.Lines(table) {
		f := strings.SplitN(strings.Join(strings.Fields(string(line)), " "), " ", 8)
		if len(f) < 8 || !strings.HasPrefix(f[7], "/") { // no path, or an abstract one
			continue
		}
		if flags, err := strconv.ParseUint(f[3], 16, 64); err == nil && flags&acceptsConnections != 0 {
			found[f[6]] = f[7]
		}
	}
	return found
}

// usersOf says of each file who uses it, "" when nobody does.
func usersOf(files []RemainsOf, all map[int]procStat) []string {
	users := make([]string, len(files))
	if len(files) == 0 {
		return users
	}
	listening := map[string]bool{}
	for _, path := range unixListeners() {
		listening[path] = true
	}
	for i, f := range files {
		if f.Socket && listening[f.Path] {
			users[i] = "somebody listens on it"
		}
	}
	if !slices.ContainsFunc(files, RemainsOf.Memory) {
		return users
	}
	hidden := 0
	for pid, s := range all {
		if s.gone() || s.flags&kernelThread != 0 {
			continue
		}
		held := heldFiles(pid)
		if held == nil {
			hidden++
		}
		for i, f := range files {
			if !f.Socket && users[i] == "" && held[f.file()] {
				users[i] = fmt.Sprintf("in use by pid %d (%s)", pid, s.comm)
			}
		}
	}
	for i, f := range files {
		var info unix.Stat_t
		open := unix.Lstat(f.Path, &info) == nil && info.Mode&(syscall.S_IRGRP|syscall.S_IWGRP|syscall.S_IROTH|syscall.S_IWOTH) != 0
		if hidden > 0 && users[i] == "" && !f.Socket && open {
			users[i] = "others may use it, and not all processes can be looked at"
		}
	}
	return users
}
