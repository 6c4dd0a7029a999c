package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/host"
)

// smiScript answers as nvidia-smi does; what each query prints comes from files beside it, and a column in the file
// "refused" is one that this version does not know.
const smiScript = `#!/bin/sh
cd "${0%/*}" || exit 99
echo "$1" >>asked
if [ -f "hang" ]; then sleep 60; fi
if [ -f "fails" ]; then cat fails; exit "$(cat status)"; fi
case $1 in
--query-gpu=*)
	columns=${1#*=}
	for c in $(cat refused 2>/dev/null); do
		case ",$columns," in *",$c,"*) printf 'Field "%s" is not a valid field to query.\n\n' "$c"; exit 2 ;; esac
	done
	if [ -f gpus ]; then cat gpus; exit 0; fi
	IFS=,
	for c in $columns; do printf '%s%s' "$sep" "$(cat "col.$c" 2>/dev/null || echo '[N/A]')"; sep=", "; done
	echo ;;
--query-compute-apps=*) cat apps 2>/dev/null; exit 0 ;;
--query-remapped-rows=*) if [ -f rows ]; then cat rows; else printf 'Option "%s" is not recognized\n' "$1"; exit 1; fi ;;
*) exit 98 ;;
esac
`

// fakeSMI writes the script and its files into a folder.
func fakeSMI(t *testing.T, files map[string]string) *host.SMI {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "nvidia-smi")
	if err := os.WriteFile(program, []byte(smiScript), 0o700); err != nil {
		t.Fatal(err)
	}
	return &host.SMI{Program: program, Timeout: 20 * time.Second}
}

// h200 is a card in columns, healthy and busy.
func h200() map[string]string {
	return map[string]string{
		"col.index": "0", "col.uuid": "GPU-a", "col.memory.total": "143771", "col.memory.used": "4", "col.name": "NVIDIA H200",
		"col.pci.bus_id": "00000000:17:00.0", "col.driver_version": "570.00.00", "col.power.draw": "75.12", "col.enforced.power.limit": "700.00",
		"col.clocks.sm": "1980", "col.clocks.mem": "3201", "col.temperature.gpu": "35", "col.ecc.errors.uncorrected.volatile.total": "0",
		"col.clocks_event_reasons.active": "0x0000000000000044", "col.mig.mode.current": "Disabled",
		"apps": "GPU-a, 4711, 1000, /usr/bin/python3\nGPU-a, 4712, [N/A], sglang::scheduler, TP0\nGPU-a, 4711, 1000, twice\nMIG-x, 9, 1, other\n",
		"rows": "GPU-a, No, No\n",
	}
}

func TestSMI(t *testing.T) {
	t.Parallel()
	want := host.GPU{
		UUID: "GPU-a", Name: "NVIDIA H200", Total: 143771 * mib, Used: 4 * mib, PCI: "00000000:17:00.0", Driver: "570.00.00",
		PowerWatts: host.Known(75.12), PowerLimitWatts: host.Known(700), SMClockMHz: host.Known(1980), MemoryClockMHz: host.Known(3201),
		TemperatureC: host.Known(35), UncorrectedECC: host.Known(0), RemapPending: host.No, RemapFailed: host.No, MIG: host.No,
		Throttle:  host.Throttle{Known: true, Reasons: []host.ThrottleReason{host.PowerCap, host.HardwareThermal}},
		Processes: []host.GPUProcess{{PID: 4711, Used: 1000 * mib, Name: "python3"}, {PID: 4712, Used: -1, Name: "sglang::scheduler, TP0"}},
	}
	for _, c := range []struct {
		name   string
		change func(files map[string]string, want *host.GPU)
	}{
		{"all there", func(map[string]string, *host.GPU) {}},
		{"a driver before 535", func(f map[string]string, _ *host.GPU) {
			f["refused"] = "clocks_event_reasons.active"
			f["col.clocks_throttle_reasons.active"] = f["col.clocks_event_reasons.active"]
		}},
		{"columns it does not know", func(f map[string]string, w *host.GPU) {
			f["refused"] = "mig.mode.current clocks_event_reasons.active clocks_throttle_reasons.active driver_version"
			w.MIG, w.Throttle, w.Driver = host.Unknown, host.Throttle{}, ""
		}},
		{"no query of remapped rows", func(f map[string]string, w *host.GPU) {
			delete(f, "rows")
			w.RemapPending, w.RemapFailed = host.Unknown, host.Unknown
		}},
		{"readings it does not have", func(f map[string]string, w *host.GPU) {
			f["col.power.draw"], f["col.enforced.power.limit"], f["col.clocks.sm"], f["col.clocks.mem"] = "[N/A]", "[Not Supported]", "ERR!", "[Unknown Error]"
			f["col.temperature.gpu"], f["col.ecc.errors.uncorrected.volatile.total"], f["col.mig.mode.current"] = "N/A", "[Insufficient Permissions]", "[N/A]"
			f["col.clocks_event_reasons.active"], f["rows"] = "Not Supported", "GPU-a, [N/A], Yes\n"
			w.PowerWatts, w.PowerLimitWatts, w.SMClockMHz, w.MemoryClockMHz, w.TemperatureC = host.Figure{}, host.Figure{}, host.Figure{}, host.Figure{}, host.Figure{}
			w.UncorrectedECC, w.MIG, w.Throttle, w.RemapPending, w.RemapFailed = host.Figure{}, host.Unknown, host.Throttle{}, host.Unknown, host.Yes
		}},
		{"infoROM corrupted, MIG on, ECC", func(f map[string]string, w *host.GPU) {
			f["gpus"], f["col.x"] = "", ""
			delete(f, "gpus")
			f["col.mig.mode.current"], f["col.ecc.errors.uncorrected.volatile.total"], f["rows"] = "Enabled", "2", "GPU-a, Yes, No\n"
			f["col.name"] = "NVIDIA H200\nWARNING: infoROM is corrupted at gpu 0000:17:00.0"
			w.MIG, w.UncorrectedECC, w.RemapPending = host.Yes, host.Known(2), host.Yes
		}},
		{"no processes", func(f map[string]string, w *host.GPU) {
			f["apps"], w.Processes = "No running processes found\n", nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files, want := h200(), want
			c.change(files, &want)
			smi := fakeSMI(t, files)
			for range 2 { // the second time it knows which columns there are
				got, note := smi.Read(t.Context())
				if diff := cmp.Diff([]host.GPU{want}, got); diff != "" || note != "" {
					t.Fatalf("note %q (-want +got)\n%s", note, diff)
				}
			}
			asked, err := os.ReadFile(filepath.Join(filepath.Dir(smi.Program), "asked"))
			if err != nil {
				t.Fatal(err)
			}
			if lines := strings.Split(strings.TrimSpace(string(asked)), "\n"); strings.Count(lines[len(lines)-1], "remapped") > 0 == (files["rows"] == "") {
				t.Errorf("asked last: %q", lines[len(lines)-1])
			}
		})
	}
}

func TestSMITrouble(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		files   map[string]string
		trouble host.GPUTrouble
		note    string // contained
	}{
		{"lost", map[string]string{"status": "15", "fails": "Unable to determine the device handle for GPU 0000:04:00.0: GPU is lost.  Reboot the system to recover this GPU"}, host.TroubleLost, "GPU is lost"},
		{"lost, told by words", map[string]string{"status": "255", "fails": "Unable to determine the device handle for GPU0: 0000:04:00.0: GPU has fallen off the bus"}, host.TroubleLost, "the GPU is lost"},
		{"lost in a column", map[string]string{"gpus": strings.Repeat("[GPU is lost], ", 14) + "NVIDIA H200\n"}, host.TroubleLost, "index says"},
		{"wants a reset", map[string]string{"gpus": "0, GPU-a, [GPU requires reset]" + strings.Repeat(", [GPU requires reset]", 11) + ", NVIDIA H200\n"}, host.TroubleLost, "lost"},
		{"no driver", map[string]string{"status": "9", "fails": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."}, host.TroubleNoDriver, "couldn't communicate"},
		{"no devices", map[string]string{"status": "6", "fails": "No devices were found"}, host.TroubleNoGPU, "lists no GPU"},
		{"no devices, status 0", map[string]string{"gpus": "No devices were found\n"}, host.TroubleNoGPU, "lists no GPU"},
		{"nothing printed", map[string]string{"gpus": ""}, host.TroubleNoGPU, "lists no GPU"},
		{"fails otherwise", map[string]string{"status": "255", "fails": "Failed to initialize NVML: Unknown Error"}, host.TroubleOther, "Failed to initialize NVML"},
		{"memory not told", map[string]string{"col.memory.used": "[N/A]"}, host.TroubleOther, `GPU 0: memory.used "[N/A]"`},
		{"memory fails", map[string]string{"col.memory.used": "ERR!"}, host.TroubleOther, `memory.used "ERR!"`},
		{"no memory column", map[string]string{"refused": "memory.used"}, host.TroubleOther, "memory.used"},
		{"words in place of a number", map[string]string{"col.power.draw": "many"}, host.TroubleOther, `power.draw "many"`},
		{"a negative number", map[string]string{"col.clocks.sm": "-1"}, host.TroubleOther, `clocks.sm "-1"`},
		{"units", map[string]string{"col.memory.total": "143771 MiB"}, host.TroubleOther, `memory.total "143771 MiB"`},
		{"MIG in other words", map[string]string{"col.mig.mode.current": "Perhaps"}, host.TroubleOther, "mig.mode.current"},
		{"too few columns", map[string]string{"gpus": "0, GPU-a\n"}, host.TroubleOther, "2 columns"},
		{"a pid that is none", map[string]string{"apps": "GPU-a, x, 1, y\n"}, host.TroubleOther, `pid "x"`},
		{"a GPU twice", map[string]string{"col.name": "a\n0, GPU-a, 1, 1" + strings.Repeat(", [N/A]", 10) + ", a"}, host.TroubleOther, "comes twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := h200()
			for name, text := range c.files {
				files[name] = text
			}
			gpus, note := fakeSMI(t, files).Read(t.Context())
			if gpus != nil || !strings.HasPrefix(note, "no GPU facts: ") || !strings.Contains(note, c.note) || host.TroubleOf(note) != c.trouble || strings.Contains(note, "\n") {
				t.Errorf("%v, %s, note %q", gpus, host.TroubleOf(note), note)
			}
		})
	}
	if gpus, note := (&host.SMI{Program: "no-such-smi"}).Read(t.Context()); gpus != nil || note != "no GPU facts: nvidia-smi is not installed or not in PATH" || host.TroubleOf(note) != host.TroubleNoLibrary {
		t.Errorf("missing: %v, %q", gpus, note)
	}
	files := h200()
	files["hang"] = ""
	smi := fakeSMI(t, files)
	smi.Timeout = 300 * time.Millisecond
	begin := time.Now()
	if gpus, note := smi.Read(t.Context()); gpus != nil || host.TroubleOf(note) != host.TroubleHung || time.Since(begin) > 10*time.Second {
		t.Errorf("hung: %v, %q after %s", gpus, note, time.Since(begin))
	}
}

// TestGPUFacts: NVML first, nvidia-smi where the library cannot be used, and the way of the first answer is kept.
func TestGPUFacts(t *testing.T) {
	t.Parallel()
	says := func(out string) *host.Probe {
		return &host.Probe{Argv: []string{"echo", out}, Timeout: 20 * time.Second}
	}
	good := `{"gpus":[{"Index":0,"UUID":"GPU-nvml","Total":1}]}`
	for _, c := range []struct {
		name string
		nvml *host.Probe
		smi  *host.SMI
		uuid string // "" = none
		note string
	}{
		{"NVML answers", says(good), fakeSMI(t, h200()), "GPU-nvml", ""},
		{"no library", says(`{"no_library":true}`), fakeSMI(t, h200()), "GPU-a", ""},
		{"old driver", says(`{"error":"the NVIDIA driver is too old: its library lacks x"}`), fakeSMI(t, h200()), "GPU-a", ""},
		{"missing symbol ends the probe", &host.Probe{Argv: []string{"sh", "-c", "echo symbol lookup error >&2; exit 127"}}, fakeSMI(t, h200()), "GPU-a", ""},
		{"without cgo", nil, fakeSMI(t, h200()), "GPU-a", ""},
		{"a lost GPU is not asked twice", says(`{"error":"GPU 1: open: the GPU is lost: x (NVML 15)"}`), fakeSMI(t, h200()), "", "no GPU facts: GPU 1: open: the GPU is lost: x (NVML 15)"},
		{"neither", says(`{"no_library":true}`), &host.SMI{Program: "no-such-smi"}, "", "no GPU facts: NVIDIA library not found; nvidia-smi is not installed or not in PATH"},
		{"no fallback", says(`{"no_library":true}`), nil, "", "no GPU facts: NVIDIA library not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &host.GPUFacts{NVML: c.nvml, SMI: c.smi}
			gpus, note := f.Read(t.Context())
			if uuid := ""; len(gpus) > 0 {
				if uuid = gpus[0].UUID; uuid != c.uuid {
					t.Errorf("read %s", uuid)
				}
			} else if c.uuid != "" {
				t.Errorf("read nothing: %s", note)
			}
			if note != c.note {
				t.Errorf("note %q", note)
			}
			if c.uuid == "GPU-a" && c.nvml != nil {
				c.nvml.Argv = []string{"echo", good} // it comes to its senses too late
				if gpus, _ := f.Read(t.Context()); len(gpus) != 1 || gpus[0].UUID != "GPU-a" {
					t.Errorf("changed the way: %v", gpus)
				}
			}
		})
	}
}
