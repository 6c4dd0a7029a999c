package host

import (
	"context"
	"encoding/json"
	"fmt"
)

// longestLog is the most of a log that one answer carries, in bytes.
const longestLog = 1 << 20

// operations are what a caller can ask for.
var operations = map[string]func(context.Context, *agent, json.RawMessage) (any, error){
	"ping":     operation((*agent).ping),
	"start":    operation((*agent).start),
	"undo":     operation((*agent).undo),
	"attach":   operation((*agent).attach),
	"guard":    operation((*agent).guard),
	"reguard":  operation((*agent).keepGuarded),
	"evidence": operation((*agent).evidence),
	"find":     operation((*agent).find),
	"log":      operation((*agent).readLog),
	"wait":     operation((*agent).wait),
	"stop":     operation((*agent).stop),
	"forget":   operation((*agent).forget),
	"clean":    operation((*agent).clean),
	"ended":    operation((*agent).ended),
	"folder":   operation((*agent).folder),
	"leftover": operation((*agent).leftovers),
	"remains":  operation((*agent).remains),
	"tidy":     operation((*agent).tidy),
	"file":     operation((*agent).file),
	"usage":    operation((*agent).usage),
	"reach":    operation((*agent).reach),
	"lease":    operation((*agent).lease),
	"renew":    operation((*agent).renew),
	"release":  operation((*agent).release),

	"settle":    operation((*agent).settle),
	"residents": operation((*agent).residents),
	"unsettle":  operation((*agent).unsettle),
	"until":     operation((*agent).until),
}

// operation decodes the arguments of f.
func operation[A, R any](f func(*agent, context.Context, A) (R, error)) func(context.Context, *agent, json.RawMessage) (any, error) {
	return func(ctx context.Context, a *agent, raw json.RawMessage) (any, error) {
		var args A
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &args); err != nil {
				return nil, fmt.Errorf("arguments: %w", err)
			}
		}
		return f(a, ctx, args)
	}
}

// ping says that the agent lives.
func (a *agent) ping(context.Context, struct{}) (struct{}, error) { return struct{}{}, a.askBeat() }

// refs names the processes with a keeper by their identity.
func (a *agent) refs() (map[int]processRef, error) {
	all, err := runFolders(a.Work)
	if err != nil {
		return nil, err
	}
	byPID := map[int]processRef{}
	for _, f := range all {
		if k, err := openRun(a.Host, f); err == nil && k.id.BootID == a.Host.boot {
			if _, ok := alive(k.id, a.Host.boot); ok {
				byPID[k.id.PID] = processRef{Run: f.key(), ID: k.id}
			}
		}
	}
	return byPID, nil
}

func (a *agent) find(ctx context.Context, args markerArgs) ([]processRef, error) {
	list, err := a.Host.Find(ctx, args.Marker)
	if err != nil {
		return nil, err
	}
	known, err := a.refs()
	if err != nil {
		return nil, err
	}
	refs := make([]processRef, 0, len(list))
	for _, p := range list {
		ref := processRef{ID: p.ID()}
		if k, ok := known[ref.ID.PID]; ok && k.ID.StartTicks == ref.ID.StartTicks {
			ref.Run = k.Run
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// attach finds a process by its identity, also one that has ended.
func (a *agent) attach(_ context.Context, id ID) (processRef, error) {
	all, err := runFolders(a.Work)
	if err != nil {
		return processRef{}, err
	}
	for _, f := range all {
		k, err := openRun(a.Host, f)
		if err == nil && k.id.BootID == id.BootID && k.id.PID == id.PID && k.id.StartTicks == id.StartTicks {
			return processRef{Run: f.key(), ID: k.id}, nil
		}
	}
	if _, ok := alive(id, a.Host.boot); ok {
		return processRef{ID: id}, nil
	}
	return processRef{}, fmt.Errorf("%w: pid %d has ended, and no keeper knows how", ErrNoProcess, id.PID)
}

func (a *agent) run(key string) (*kept, error) {
	f, err := folderOf(a.Work, key)
	if err != nil {
		return nil, err
	}
	return openRun(a.Host, f)
}

func (a *agent) readLog(_ context.Context, args logArgs) ([]byte, error) {
	k, err := a.run(args.Run)
	if err != nil {
		return nil, err
	}
	return k.readLog(args.Offset, min(args.Limit, longestLog))
}

func (a *agent) wait(ctx context.Context, ref processRef) (Exit, error) {
	if ref.ID.Container != "" {
		return a.waitContainer(ctx, ref.ID)
	}
	if ref.Run == "" {
		return waitFound(ctx, a.Host, ref.ID)
	}
	k, err := a.run(ref.Run)
	if err != nil {
		return Exit{}, err
	}
	return k.wait(ctx)
}

func (a *agent) stop(ctx context.Context, args stopArgs) (struct{}, error) {
	if args.Over {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	if args.Process.ID.Container != "" {
		return struct{}{}, a.stopContainer(ctx, args)
	}
	if args.Process.Run == "" {
		return struct{}{}, (&found{host: a.Host, id: args.Process.ID}).Stop(ctx, args.Grace)
	}
	k, err := a.run(args.Process.Run)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, k.stop(ctx, args.Grace)
}

func (a *agent) usage(ctx context.Context, _ struct{}) (Usage, error) { return a.Host.Usage(ctx) }

func (a *agent) reach(ctx context.Context, args portArgs) (wireEndpoint, error) {
	e, err := a.Host.Reach(ctx, args.Port)
	if err != nil {
		return wireEndpoint{}, err
	}
	return wireEndpoint{Port: e.Port, URL: e.URL, Listening: e.Listening, Owners: e.Owners}, nil
}
