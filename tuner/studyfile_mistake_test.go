package tuner_test

import (
	"strings"
	"testing"
)

func TestMistakes(t *testing.T) {
	t.Parallel()
	with := func(lines string) string { return minimal + lines }
	for _, tt := range []struct{ name, file, want string }{
		{"unknown key", with("bugdet: {trials: 3}\n"), "s.yaml:4:1: unknown key `bugdet`; did you mean `budget`?"},
		{"unknown key far from all", with("zzzzzz: 3\n"), "s.yaml:4:1: unknown key `zzzzzz`; remove it; known keys: after, before,"},
		{"unknown nested key", with("measure: {windw: 3s}\n"), "s.yaml:4:11: unknown key `measure.windw`; did you mean `window`?"},
		{"second budget", with("budget: {trials: 3}\nbudget: {wall: 9h}\n"), "s.yaml:5:1: `budget` is given twice, first on line 4; keep one of them"},
		{"negative budget", with("budget: {trials: -3}\n"), "s.yaml:4:18: `budget.trials` is negative"},
		{"negative wall", with("budget: {wall: -9h}\n"), "s.yaml:4:16: budget.wall: `-9h` is negative"},
		{"empty budget", with("budget: {}\n"), "`budget` is empty; write trials, wall or until"},
		{"budget no mapping", with("budget: 30\n"), "s.yaml:4:9: `budget` must be a mapping"},
		{"broken until", with("budget: {until: 25:00}\n"), "budget.until: `25:00` is not a time of day"},
		{"duration without unit", with("measure: {window: 60}\n"), "s.yaml:4:19: measure.window: `60` has no unit; write 60s, 60m or 60h"},
		{"size without unit", with("host: {ram_budget: 400}\n"), "s.yaml:4:20: host.ram_budget: `400` has no unit; write 400GB"},
		{"target above 1", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl, load: {target: 3}}\n", "s.yaml:3:48: workload.load.target: `3` is not between 0 and 1"},
		{"fraction above 1", "server: {model: m}\nspace: {mem-fraction-static: [0.8, 1.5]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:2:36: mem-fraction-static must be between"},
		{"missing model", "server: {flags: {tp-size: 8}}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "s.yaml: `server.model` is missing; add"},
		{"missing space", "server: {model: m}\nworkload: {file: prompts.jsonl}\n", "s.yaml: `space` is missing; add"},
		{"missing workload", "server: {model: m}\nspace: {hicache-size: [0]}\n", "s.yaml: `workload` is missing; add"},
		{"missing workload file", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {load: {concurrency: 4}}\n", "s.yaml: `workload.file` is missing; add"},
		{"workload not there", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: nowhere.jsonl}\n", "s.yaml:3:18: `workload.file` `nowhere.jsonl` does not exist"},
		{"workload is a folder", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: .}\n", "`workload.file` `.` is a folder"},
		{"ssh", with("host: {kind: ssh, address: gpu-box}\n"), "s.yaml:4:14: `host.kind` ssh is not in this version, which has local and simulated"},
		{"slurm", with("host: {kind: slurm, partition: gpu}\n"), "s.yaml:4:14: `host.kind` slurm is not in this version"},
		{"bad kind", with("host: {kind: simulatd}\n"), "`host.kind` cannot be `simulatd`; did you mean `simulated`?"},
		{"simulated key on a local host", with("host: {kind: local, profile: kimi-8x96}\n"), "s.yaml:4:21: `host.profile` is for simulated hosts"},
		{"gate", with("quality: {gate: {}}\n"), "`quality` with a gate is not in this version"},
		{"rate", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl, load: {rate: [1]}}\n", "`workload.load.rate` is not in this version, which has concurrency"},
		{"container", "server: {model: m, container: {image: x}}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.container` is not in this version"},
		{"study name", with("study: a/b\n"), "s.yaml:4:8: `study` cannot be `a/b`"},
		{"long study name", with("study: " + strings.Repeat("x", 129) + "\n"), "`study` has 129 characters"},
		{"docker", "server: {model: m, command: [docker, run, x]}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:1:29: `server.command` starts with docker: sgtune could not stop"},
		{"docker as text", "server: {model: m, command: docker run x}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.command` starts with docker"},
		{"sudo docker", "server: {model: m, command: [sudo, /usr/bin/docker, run, x]}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.command` starts with docker"},
		{"ampersand", "server: {model: m, command: [python3, x.py, '&']}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.command` ends in &"},
		{"command as text", "server: {model: m, command: python3 -m sglang.launch_server}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.command` must be a list of words"},
		{"after and launch", with("after: [systemctl, start, x]\nfinish: {launch: best}\n"), "s.yaml:5:18: `finish.launch` and `after` would both start a server"},
		{"dead knob", "server: {model: m}\nspace: {num-continuous-decode-steps: [1, 2]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:2:9: `space.num-continuous-decode-steps` does nothing"},
		{"unknown knob", "server: {model: m}\nspace: {mem-fraction-statc: [0.8]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:2:9: unknown knob `space.mem-fraction-statc`; did you mean `mem-fraction-static`?"},
		{"underscores", "server: {model: m}\nspace: {mem_fraction_static: [0.8]}\nworkload: {file: prompts.jsonl}\n", "did you mean `mem-fraction-static`?"},
		{"alias", "server: {model: m, flags: {tensor-parallel-size: 2, tp-size: 2}}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.flags.tp-size` is given twice under two names"},
		{"dashes", "server: {model: m, flags: {--tp-size: 8}}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "has dashes; did you mean `tp-size`?"},
		{"broken hicache", "server: {model: m}\nspace: {hicache-size: [0, 48.5]}\nworkload: {file: prompts.jsonl}\n", "hicache-size takes a whole number, not 48.5"},
		{"duplicate value", "server: {model: m}\nspace: {hicache-size: [0, 16, 0]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:2:31: `space.hicache-size` holds `0` twice"},
		{"no values", "server: {model: m}\nspace: {hicache-size: []}\nworkload: {file: prompts.jsonl}\n", "`space.hicache-size` has no values"},
		{"min above max", "server: {model: m}\nspace: {hicache-size: {min: 9, max: 1, step: 1}}\nworkload: {file: prompts.jsonl}\n", "min 9 is above max 1"},
		{"step 0", "server: {model: m}\nspace: {hicache-size: {min: 0, max: 1, step: 0}}\nworkload: {file: prompts.jsonl}\n", "step 0 is not above 0"},
		{"no step", "server: {model: m}\nspace: {hicache-size: {min: 0, max: 1}}\nworkload: {file: prompts.jsonl}\n", "`space.hicache-size` has no `step`"},
		{"huge range", "server: {model: m}\nspace: {schedule-conservativeness: {min: 0, max: 1, step: 0.0000001}}\nworkload: {file: prompts.jsonl}\n", "has 10000001 values, more than 10000"},
		{"nothing but lossy values", "server: {model: m}\nspace: {kv-cache-dtype: [fp8_e4m3]}\nworkload: {file: prompts.jsonl}\n", "`space.kv-cache-dtype` holds only values that the rule quality"},
		{"one knob twice", "server: {model: m}\nspace: {tp: [1], tp-size: [2]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:2:18: `space.tp-size` is given twice under two names"},
		{"fixed and searched", "server: {model: m, flags: {hicache-size: 16}}\nspace: {hicache-size: [0, 16]}\nworkload: {file: prompts.jsonl}\n", "`hicache-size` is both a fixed flag and a knob of the space"},
		{"objective needs slo", with("objective: goodput\n"), "`objective` goodput counts what meets the slo"},
		{"confirm", with("confirm: {launches: 9}\n"), "`confirm.launches` cannot be `9`"},
		{"sampler", with("sampler: tpee\n"), "`sampler` cannot be `tpee`; did you mean `tpe`?"},
		{"notify not there", with("finish: {notify: [./nowhere.sh]}\n"), "`finish.notify` runs `./nowhere.sh`, which is not a file"},
		{"not YAML", "server: [a\nspace: b\n", "not readable as YAML"},
		{"anchors", with("x: &a 1\n"), "YAML anchors and aliases are not read"},
		{"second document", "a: 1\n---\nb: 2\n", "a second document starts here"},
		{"only text", "hello", "the study file must be a mapping of keys"},
		{"empty", " \n", "s.yaml: the file is empty"},
		{"comment only", "# x\n", "s.yaml: the file is empty"},
		{"binary", "\x00\x01\x02", "s.yaml: this is a binary file"},
		{"nested too deep", strings.Repeat("[", 5000), "nested too deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(t, tt.file)
			if err == nil {
				t.Fatal("accepted")
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) != 1 || !strings.Contains(lines[0], tt.want) {
				t.Errorf("got:\n%v\nwant one line with:\n%s", err, tt.want)
			}
		})
	}
}
