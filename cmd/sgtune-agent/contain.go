package main

import (
	"context"
	"fmt"
	"io"

	"sgtune/host"
)

// contain is the holder of a container; it ends as the container does.
func contain(ctx context.Context, folder string, stdout, stderr io.Writer) int {
	status, err := host.ContainMain(ctx, machine(), folder, stdout)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "sgtune-agent:", err)
	}
	return status
}
