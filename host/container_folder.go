package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// contained is one container as its folder remembers it: from before it is made until it is gone, so that no crash
// leaves one that nobody looks for. The folder lies under the host's state folder and is named after the marker.
// Beside the files that it shares with runFolder (command, begun, failed, rc) it holds:
//
//	container  containedSpec
//	holder     the process that follows it (ID)
//	started    its main process (containedMain): from here on it runs
//	removed    it is gone, and rc says how it ended
type contained struct {
	host   *Local
	folder runFolder
	spec   containedSpec
	apart  bool // words to the runtime are said in a session of their own
}

// containedSpec is what must be known to find and end the container.
type containedSpec struct {
	Runtime string `json:"runtime"`
	Marker  string `json:"marker"`
}

type containedMain struct {
	PID int `json:"pid"`
}

// birthTime is how long after "begun" a container may appear whose maker was killed: the runtime's daemon finishes
// what it was asked for.
const birthTime = 3 * time.Second

func (c *contained) name() string { return containerName(c.spec.Marker) }

func (c *contained) tell(ctx context.Context, limit time.Duration, args ...string) (string, error) {
	return tell(ctx, limit, c.apart, append([]string{c.spec.Runtime}, args...)...)
}

// containersDir is where the folders of this machine's containers lie: home folders are often shared between machines.
func (l *Local) containersDir() (string, error) {
	lease, err := l.leasePath()
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(lease, ".json") + ".containers", nil
}

// newContained writes the folder of a container that is about to be made.
func (l *Local) newContained(c Command) (*contained, error) {
	if c.Marker == "" || strings.ContainsAny(c.Marker, "/\x00") || c.Marker[0] == '.' {
		return nil, fmt.Errorf("a container needs a marker that is a plain name, not %q", c.Marker)
	}
	if c.Container.Image == "" {
		return nil, errors.New("a container needs an image")
	}
	runtime, err := lookPath(c.Container.Runtime, os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	dir, err := l.containersDir()
	if err != nil {
		return nil, err
	}
	k := &contained{host: l, folder: runFolder(filepath.Join(dir, c.Marker)), spec: containedSpec{Runtime: runtime, Marker: c.Marker}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of a container: %w", err)
	}
	if err := os.Mkdir(string(k.folder), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of a container: %w", err)
	}
	command := *c.Container
	command.Runtime = runtime
	c.Container = &command
	if err := errors.Join(k.folder.reserve(), k.folder.write("container", k.spec), k.folder.write("command", packCommand(c))); err != nil {
		return nil, errors.Join(fmt.Errorf("write the folder of a container: %w", err), os.RemoveAll(string(k.folder)))
	}
	return k, nil
}

// openContained reads the folder of a container.
func (l *Local) openContained(folder string) (*contained, error) {
	c := &contained{host: l, folder: runFolder(folder), apart: true}
	if err := c.folder.read("container", &c.spec); err != nil {
		return nil, fmt.Errorf("read the folder of a container: %w", err)
	}
	return c, nil
}

// containers lists those with a marker, any when it is empty. Folders that are being made or removed are left out.
func (l *Local) containers(marker string) ([]*contained, error) {
	dir, err := l.containersDir()
	if err != nil {
		return nil, nil //nolint:nilerr // without a state folder none was ever made
	}
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list containers of trials: %w", err)
	}
	var all []*contained
	for _, e := range list {
		if marker != "" && e.Name() != marker {
			continue
		}
		c, err := l.openContained(filepath.Join(dir, e.Name()))
		switch {
		case err == nil:
			all = append(all, c)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return all, nil
}

// held reports whether the process that follows the container lives.
func (c *contained) held() bool {
	var id ID
	if c.folder.read("holder", &id) != nil {
		return false
	}
	_, ok := alive(id, c.host.boot)
	return ok
}

// mainPID is the main process of the container, 0 when it is not known.
func (c *contained) mainPID() int {
	var m containedMain
	_ = c.folder.read("started", &m) // not there yet, or gone with the folder
	return m.PID
}

// settled reports whether a container that is not there will not appear any more.
func (c *contained) settled() bool {
	// an exit that was saved is that of a container that was seen
	if c.folder.has("started") || c.folder.has("failed") || c.folder.has("removed") || c.folder.has("rc") {
		return true
	}
	for _, name := range []string{"begun", "container"} {
		if info, err := os.Stat(c.folder.path(name)); err == nil {
			return !c.held() && time.Since(info.ModTime()) > birthTime
		}
	}
	return true // the folder is gone
}

// saveExit writes how the container ended, unless that is written. A container must not be removed before.
func (c *contained) saveExit(e Exit) error {
	if c.folder.has("rc") {
		return nil
	}
	return c.folder.writeExit(keptExit{Exit: e, GroupGone: true})
}

// exit reads how the container ended, where that was saved.
func (c *contained) exit() (Exit, bool) {
	var e keptExit
	return e.Exit, c.folder.read("rc", &e) == nil
}

// clear kills the container, saves how it ended, removes it and forgets it. The runtime is given its own time for each
// word, whatever is left of ctx: half a removal would only have to be done again.
func (c *contained) clear(ctx context.Context) error {
	own := context.WithoutCancel(ctx)
	var trouble error
	for i, wait := 0, firstPoll; ; i, wait = i+1, min(2*wait, lastPoll) {
		state, there, err := c.look(own)
		switch {
		case err != nil:
			trouble = err
		case !there && c.settled():
			return os.RemoveAll(string(c.folder))
		case !there:
			trouble = errors.New("it may be about to start")
		case state.over() || state.unborn():
			if trouble = c.saveExit(state.exit(time.Now())); trouble == nil {
				trouble = c.remove(own)
			}
		default:
			_, trouble = c.tell(own, askLimit, "kill", c.name())
		}
		if i < 3 {
			pause(own, wait)
		} else if !pause(ctx, wait) {
			return fmt.Errorf("stop container %s: %w: %w", c.name(), context.Cause(ctx), errors.Join(trouble, errors.New("it is still there")))
		}
	}
}

// holdsContainer reports whether a container with the marker may be there.
func (l *Local) holdsContainer(marker string) bool {
	if marker == "" {
		return false
	}
	list, err := l.containers(marker)
	return err == nil && len(list) > 0 && !list[0].folder.has("removed")
}

// containerPID is the main process of the marker's container, 0 without one.
func (l *Local) containerPID(marker string) int {
	if list, err := l.containers(marker); err == nil && marker != "" && len(list) > 0 {
		return list[0].mainPID()
	}
	return 0
}

// remove removes a container that has ended, with the volumes that were made for it alone.
func (c *contained) remove(ctx context.Context) error {
	_, err := c.tell(ctx, removeLimit, "rm", "-f", "-v", c.name())
	if err != nil {
		if _, there, looked := c.look(ctx); looked == nil && !there { // somebody else was faster
			err = nil
		}
	}
	return err
}

// clearContainers ends and removes the containers with a marker; it does nothing where there are none.
func (l *Local) clearContainers(ctx context.Context, marker string) error {
	if marker == "" {
		return nil
	}
	list, err := l.containers(marker)
	if err != nil {
		return err
	}
	for _, c := range list {
		err = errors.Join(err, c.clear(ctx))
	}
	return err
}
