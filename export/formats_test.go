package export_test

import (
	"errors"
	"strings"
	"testing"

	"sgtune/export"
	"sgtune/sglang"
)

func TestFormats(t *testing.T) {
	t.Parallel()
	p := export.Profile{Study: `a/../b"c`, Trial: 7, Server: sglang.Server{Command: []string{"python3", "-m", "x"}, Model: "/m"}}
	for _, name := range export.Formats() {
		var b strings.Builder
		if err := export.Write(&b, name, p); err != nil || !strings.Contains(b.String(), "/m") {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
		if file := export.FileName(p, name); !strings.HasPrefix(file, "a_.._b_c-7.") || strings.ContainsAny(file, `/"`) {
			t.Errorf("%s: file %s", name, file)
		}
	}
	var unknown *export.FormatError
	if err := export.Write(&strings.Builder{}, "exe", p); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "sglang-yaml, sh") {
		t.Errorf("an unknown format: %v", err)
	}
}
