package host

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sweepTime is how long a control master may take to end.
const sweepTime = 5 * time.Second

// sweepSockets removes what a killed sgtune has left: its control masters, which would live on for two minutes
// (sshPersist), and sockets on which nobody listens any more. It is a tidying: what fails stays.
func sweepSockets(dir, program string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	space, dismissed := pidSpace(), map[int]bool{}
	for _, e := range list { // in order: a master before its forwards
		number, rest, ok := strings.Cut(strings.TrimLeft(e.Name(), "cf"), "-")
		pid, err := strconv.Atoi(number)
		if !ok || err != nil || !strings.HasPrefix(rest, space) || syscall.Kill(pid, 0) == nil {
			continue
		}
		path := filepath.Join(dir, e.Name())
		c, err := net.DialTimeout("unix", path, time.Second)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			_ = os.Remove(path)
			continue
		case err != nil:
			continue
		}
		switch {
		case e.Name()[0] == 'c':
			dismissed[pid] = dismiss(program, path)
		case dismissed[pid]:
			_ = os.Remove(path)
		}
		_ = c.Close()
	}
}

// dismiss has a control master end.
func dismiss(program, path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-F", os.DevNull, "-o", "ControlPath="+path, "-O", "exit", "--", "sgtune")
	cmd.Env = probeEnv()
	return cmd.Run() == nil
}
