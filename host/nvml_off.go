//go:build !cgo

package host

import "fmt"

// ReadGPUs needs cgo; a build without it has no GPU facts of its own.
func ReadGPUs(string) ([]GPU, error) {
	return nil, fmt.Errorf("%w: this sgtune was built without cgo", ErrNoLibrary)
}

// ReadEnergy needs cgo; SMIEnergy does without.
func ReadEnergy(string) ([]GPUEnergy, error) {
	return nil, fmt.Errorf("%w: this sgtune was built without cgo", ErrNoLibrary)
}
