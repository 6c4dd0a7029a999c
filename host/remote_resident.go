package host

import "context"

// Settle starts a server that stays on the machine, or finds the one that a Settle of the same command has started
// before; see Local. Its folder, and the log in it, are the machine's.
func (r *Remote) Settle(ctx context.Context, s ResidentSpec) (Resident, error) {
	var settled Resident
	args := residentArgs{Name: s.Name, Command: packCommand(s.Command), Port: s.Port, Secrets: s.Secrets}
	if err := r.call(ctx, "settle", args, &settled); err != nil {
		return Resident{}, r.told("", err)
	}
	return settled, nil
}

// Residents are the servers that were left running on the machine and still are, by name.
func (r *Remote) Residents(ctx context.Context) ([]Resident, error) {
	var list []Resident
	if err := r.call(ctx, "residents", struct{}{}, &list); err != nil {
		return nil, r.told("list the servers that were left running", err)
	}
	return list, nil
}

// Dismiss ends a server that was left running, and its keeper. One that is not there is no error.
func (r *Remote) Dismiss(ctx context.Context, name string) error {
	if err := r.call(ctx, "unsettle", residentArgs{Name: name}, &struct{}{}); err != nil {
		return r.told("", err)
	}
	return nil
}
