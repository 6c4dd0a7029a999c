package host

import "context"

// RemoveRemains removes what dead processes left on the node; see Local.RemoveRemains. Without a connection to the
// node there is nothing that could be done.
func (s *Slurm) RemoveRemains(ctx context.Context, marker string) ([]RemainsOf, error) {
	node, err := s.connected(ctx, false)
	if err != nil || node == nil {
		return nil, err
	}
	ctx, done := s.within(ctx)
	defer done()
	return node.RemoveRemains(ctx, marker)
}
