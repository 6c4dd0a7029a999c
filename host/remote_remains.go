package host

import "context"

// Remains lists what dead processes left on the machine; see Local.Remains.
func (r *Remote) Remains(ctx context.Context, marker string) ([]RemainsOf, error) {
	var list []RemainsOf
	if err := r.call(ctx, "remains", markerArgs{Marker: marker}, &list); err != nil {
		return nil, r.told("look for what trials left", err)
	}
	return list, nil
}

// RemoveRemains removes what dead processes left on the machine; see Local.RemoveRemains.
func (r *Remote) RemoveRemains(ctx context.Context, marker string) ([]RemainsOf, error) {
	var list []RemainsOf
	if err := r.call(ctx, "tidy", markerArgs{Marker: marker}, &list); err != nil {
		return nil, r.told("remove what trials left", err)
	}
	return list, nil
}

// Leftovers lists the processes with a marker on the machine; see Local.Leftovers. What a keeper started belongs to
// whoever holds the machine's lease.
func (r *Remote) Leftovers(ctx context.Context) ([]Leftover, error) {
	var list []Leftover
	if err := r.call(ctx, "leftover", struct{}{}, &list); err != nil {
		return nil, r.told("look for processes of dead trials", err)
	}
	return list, nil
}

func (a *agent) leftovers(ctx context.Context, _ struct{}) ([]Leftover, error) {
	return a.Host.Leftovers(ctx)
}

func (a *agent) remains(ctx context.Context, args markerArgs) ([]RemainsOf, error) {
	return a.Host.Remains(ctx, args.Marker)
}

func (a *agent) tidy(ctx context.Context, args markerArgs) ([]RemainsOf, error) {
	return a.Host.RemoveRemains(ctx, args.Marker)
}
