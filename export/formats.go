package export

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// format is one kind of launch profile.
type format struct {
	write  func(io.Writer, Profile) error
	ending string // of a file's name
}

var formats = map[string]format{
	"sh": {WriteShell, ".sh"}, "sglang-yaml": {WriteSGLangYAML, ".sglang.yaml"},
}

// Formats lists the names of the launch profiles that can be written, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// FormatError is a name that is no format.
type FormatError struct{ Name string }

// Error names the formats there are.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%q is not one of %s", e.Name, strings.Join(Formats(), ", "))
}

// Write writes p in the format of a name; *FormatError when there is none.
func Write(w io.Writer, name string, p Profile) error {
	f, known := formats[name]
	if !known {
		return &FormatError{name}
	}
	return f.write(w, p)
}

// FileName is what a profile in a format may be called, made of harmless characters only.
func FileName(p Profile, name string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, p.Study)
	return fmt.Sprintf("%s-%d%s", safe, p.Trial, formats[name].ending)
}
