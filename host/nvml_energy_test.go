//go:build cgo

package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
	"sgtune/internal/hosttest"
)

// newEnergy is newNVML whose probe reads energy.
func newEnergy(t *testing.T, lib, state string) nvml {
	n := newNVML(t, lib, state)
	for i, word := range n.probe.Argv {
		if word == hosttest.HelperEnv+"=probe" {
			n.probe.Argv[i] = hosttest.HelperEnv + "=energy"
		}
	}
	return n
}

func TestEnergy(t *testing.T) {
	t.Parallel()
	lib := buildNVML(t)
	n := newEnergy(t, lib, "count = 2\ngpu.0.energy_mj = 123456789\ngpu.1.energy_mj = 5000\ngpu.1.uuid = GPU-x\ngpu.1.power_w = 81.5\n")
	want := []host.GPUEnergy{
		{Index: 0, UUID: "GPU-fa4e0000-0000-0000-0000-000000000000", Joules: 123456.789, Watts: 75},
		{Index: 1, UUID: "GPU-x", Joules: 5, Watts: 81.5},
	}
	got, err := n.probe.Energy(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	n = newEnergy(t, buildNVML(t, "nvmlDeviceGetTotalEnergyConsumption", "lacksEnergy"), "gpu.0.power_w = 60\n")
	if got, err := n.probe.Energy(t.Context()); err != nil || len(got) != 1 || got[0].Joules >= 0 || got[0].Watts != 60 {
		t.Errorf("without a counter: %+v, %v", got, err)
	}
	for name, c := range map[string]struct{ lib, state, want string }{
		"no library": {filepath.Join(t.TempDir(), "libnvidia-ml.so.1"), "", host.ErrNoLibrary.Error()},
		"no driver":  {lib, "init_error = 9", "cannot be used: initialise NVML"},
		"lost":       {lib, "gpu.0.error = 15", "GPU 0: open"},
		"none":       {lib, "count = 0", "lists no GPU"},
	} {
		n := newEnergy(t, c.lib, c.state)
		if got, err := n.probe.Energy(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestSMIEnergy runs a program in nvidia-smi's place.
func TestSMIEnergy(t *testing.T) {
	t.Parallel()
	smi := func(script string) *host.Probe {
		path := filepath.Join(t.TempDir(), "nvidia-smi")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		return &host.Probe{Argv: append([]string{path}, host.SMIEnergyArgv()[1:]...), Timeout: 20 * time.Second}
	}
	p := smi(`[ "$1" = --query-gpu=index,uuid,power.draw ] || exit 3; printf '0, GPU-a, 75.12\n1, GPU-b, [N/A]\n'`)
	want := []host.GPUEnergy{{Index: 0, UUID: "GPU-a", Joules: -1, Watts: 75.12}, {Index: 1, UUID: "GPU-b", Joules: -1, Watts: -1}}
	got, err := host.SMIEnergy(t.Context(), p)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for name, script := range map[string]string{"fails": "echo no driver; exit 9", "empty": "true", "words": "echo No devices were found", "no number": "echo '0, GPU-a, many'"} {
		if got, err := host.SMIEnergy(t.Context(), smi(script)); err == nil || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := host.SMIEnergy(t.Context(), &host.Probe{Argv: []string{"no-such-smi"}}); err == nil || errors.Is(err, host.ErrNoLibrary) {
		t.Errorf("no nvidia-smi: %v", err)
	}
}
