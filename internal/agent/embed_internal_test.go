package agent

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// packed is what make agent would have written for a program.
func packed(t *testing.T, program string) (gz []byte, sum string) {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(program))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h := sha256.Sum256([]byte(program))
	return b.Bytes(), hex.EncodeToString(h[:])
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	gz, sum := packed(t, "ELF")
	other, _ := packed(t, "elf")
	files := func(gz []byte, sums string) fstest.MapFS {
		m := fstest.MapFS{"bin/README.md": {}}
		if sums != "" {
			m["bin/SHA256SUMS"] = &fstest.MapFile{Data: []byte(sums)}
		}
		if gz != nil {
			m["bin/sgtune-agent-linux-arm64.gz"] = &fstest.MapFile{Data: gz}
		}
		return m
	}
	line := strings.Repeat("0", 64) + "  sgtune-agent-linux-amd64\n" + sum + "  sgtune-agent-linux-arm64\n"
	for _, c := range []struct {
		name  string
		files fstest.MapFS
		arch  string
		want  string // in the error, "" = none
	}{
		{"good", files(gz, line), "arm64", ""},
		{"name of uname", files(gz, line), "aarch64", ""},
		{"never built", files(nil, ""), "arm64", "make agent"},
		{"no program", files(nil, line), "arm64", "make agent"},
		{"no sum", files(gz, "x\n"), "arm64", "make agent"},
		{"another program", files(other, line), "arm64", "has checksum"},
		{"cut", files(gz[:len(gz)-4], line), "arm64", "unexpected EOF"},
		{"unknown", files(gz, line), "riscv64", "known are amd64, arm64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := unpack(c.files, c.arch)
			if c.want == "" {
				if err != nil || string(p.Bytes) != "ELF" || p.SHA256 != sum || p.Arch != "arm64" {
					t.Errorf("%+v, %v", p, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// What is embedded is either all there and right, or said to be absent.
func TestEmbeddedPrograms(t *testing.T) {
	t.Parallel()
	for _, arch := range Archs() {
		sum, sumErr := Checksum(arch)
		if testing.Short() && sumErr == nil && arch != runtime.GOARCH {
			continue // unpacking takes a second under -race
		}
		p, err := Binary(arch)
		if errors.Is(err, ErrAbsent) && errors.Is(sumErr, ErrAbsent) {
			continue
		}
		if err != nil || sumErr != nil || p.SHA256 != sum || !bytes.HasPrefix(p.Bytes, []byte("\x7fELF")) {
			t.Errorf("%s: %v, %v", arch, err, sumErr)
		}
	}
}
