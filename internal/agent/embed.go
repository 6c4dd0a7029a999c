package agent

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// built is what make agent left behind; of a clone that never ran it, only a README.
//
//go:embed bin
var built embed.FS

// ErrAbsent is the error of Binary in an sgtune that was built without agents.
var ErrAbsent = errors.New("this sgtune was built without its agent: run make agent and build it again")

// Program is an agent ready to be copied to a machine.
type Program struct {
	Arch   string // as Go calls it: "amd64"
	SHA256 string // of Bytes, hexadecimal
	Bytes  []byte // an ELF executable, static
}

// Archs are the architectures agents are built for, as Go calls them.
func Archs() []string { return []string{"amd64", "arm64"} }

// machines are the names uname -m has for them.
var machines = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

// Binary unpacks the agent for Linux on arch, which is Go's or uname's name of it ("amd64", "x86_64"), and checks
// it against the checksum it was built with. The error is ErrAbsent where none was built in.
func Binary(arch string) (Program, error) {
	return unpack(built, arch)
}

func unpack(files fs.FS, arch string) (Program, error) {
	if known, ok := machines[arch]; ok {
		arch = known
	}
	want, err := checksum(files, arch)
	if err != nil {
		return Program{}, err
	}
	packed, err := fs.ReadFile(files, "bin/"+name(arch)+".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return Program{}, ErrAbsent
	} else if err != nil {
		return Program{}, fmt.Errorf("embedded agent for %s: %w", arch, err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return Program{}, fmt.Errorf("embedded agent for %s: %w", arch, err)
	}
	program, err := io.ReadAll(unzip)
	if err != nil {
		return Program{}, fmt.Errorf("embedded agent for %s: %w", arch, err)
	}
	sum := sha256.Sum256(program)
	if got := hex.EncodeToString(sum[:]); got != want {
		return Program{}, fmt.Errorf("embedded agent for %s has checksum %s and was built as %s: run make agent and build sgtune again", arch, got, want)
	}
	return Program{Arch: arch, SHA256: want, Bytes: program}, nil
}

// Checksum is the SHA-256 of the embedded agent for arch, hexadecimal; its error is that of Binary. It is cheap:
// nothing is unpacked.
func Checksum(arch string) (string, error) { return checksum(built, arch) }

// checksum reads SHA256SUMS, which is in the form of sha256sum.
func checksum(files fs.FS, arch string) (string, error) {
	known := false
	for _, a := range Archs() {
		known = known || a == arch
	}
	if !known {
		return "", fmt.Errorf("there is no agent for the architecture %q; known are %s", arch, strings.Join(Archs(), ", "))
	}
	sums, err := fs.ReadFile(files, "bin/SHA256SUMS")
	if err != nil {
		return "", ErrAbsent
	}
	for line := range strings.Lines(string(sums)) {
		if sum, file, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && file == name(arch) {
			return sum, nil
		}
	}
	return "", ErrAbsent
}

// name is the file name of an agent.
func name(arch string) string { return "sgtune-agent-linux-" + arch }
