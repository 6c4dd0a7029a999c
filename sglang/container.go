package sglang

// Container is where a server's command runs, when it does not run on its host directly.
type Container struct {
	Runtime string   `json:"runtime"` // docker or podman
	Image   string   `json:"image"`
	Args    []string `json:"args,omitempty"` // of the runtime's run, as the user wrote them
	// Memory is the limit that Args set, bytes; 0 = none.
	Memory int64 `json:"memory,omitempty"`
}
