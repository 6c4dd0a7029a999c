package host

import (
	"context"
	"slices"
)

// residentArgs ask for a server that stays.
type residentArgs struct {
	Name    string      `json:"name"`
	Command wireCommand `json:"command"`
	Port    int         `json:"port"`
	Secrets []string    `json:"secrets,omitempty"`
}

// settle leaves a server running. Asked again, for lack of an answer, it finds what the first request started.
func (a *agent) settle(ctx context.Context, args residentArgs) (Resident, error) {
	return a.Host.Settle(ctx, ResidentSpec{
		Name: args.Name, Command: args.Command.command(""), Port: args.Port, Secrets: args.Secrets, Keeper: slices.Concat(a.Self, []string{"stay"}),
	})
}

func (a *agent) residents(ctx context.Context, _ struct{}) ([]Resident, error) {
	return a.Host.Residents(ctx)
}

func (a *agent) unsettle(ctx context.Context, args residentArgs) (struct{}, error) {
	return struct{}{}, a.Host.Dismiss(ctx, args.Name)
}
