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
		{"key of a section", with("notify: [./notify.sh]\n"), "s.yaml:4:1: unknown key `notify`; it goes under `finish`: write `finish.notify`"},
		{"key of a section that is missing", "model: m\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "s.yaml:1:1: unknown key `model`; it goes under `server`: write `server.model`"},
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
		{"ssh without an address", with("host: {kind: ssh}\n"), "s.yaml:4:14: `host.kind` ssh needs an address; add address:"},
		{"ssh option as address", with("host: {kind: ssh, address: -oProxyCommand=x}\n"), "s.yaml:4:28: `host.address` cannot be `-oProxyCommand=x`; write what you would write after ssh"},
		{"ssh command as address", with("host: {kind: ssh, address: 'box reboot'}\n"), "s.yaml:4:28: `host.address` cannot be `box reboot`"},
		{"empty address", with("host: {kind: ssh, address: ''}\n"), "s.yaml:4:28: `host.address`"},
		{"ssh key on a local host", with("host: {address: gpu-box}\n"), "s.yaml:4:8: `host.address` is for ssh hosts; remove it, or write kind: ssh"},
		{"ssh config on a simulated host", with("host: {kind: simulated, ssh_config: x}\n"), "s.yaml:4:25: `host.ssh_config` is for ssh hosts"},
		{"simulated key on an ssh host", with("host: {kind: ssh, address: box, seed: 3}\n"), "s.yaml:4:33: `host.seed` is for simulated hosts"},
		{"replay from elsewhere", with("host: {kind: ssh, address: box, replay_from: there}\n"), "s.yaml:4:46: `host.replay_from` cannot be `there`"},
		{"low floor", with("host: {ram_floor: 500MB}\n"), "s.yaml:4:19: `host.ram_floor` `500MB` is too low"},
		{"high floor", with("host: {ram_floor: 11GB}\n"), "s.yaml:4:19: `host.ram_floor` `11GB` is too high"},
		{"floor without unit", with("host: {ram_floor: 4}\n"), "s.yaml:4:19: host.ram_floor: `4` has no unit"},
		{"no floor", with("host: {ram_floor: 0GB}\n"), "s.yaml:4:19: host.ram_floor: it is 0"},
		{"short patience", with("host: {kind: ssh, address: box, tuner_gone: 20s}\n"), "s.yaml:4:45: `host.tuner_gone` `20s` is too short for an ssh host"},
		{"Slurm key on an ssh host", with("host: {kind: ssh, address: box, gres: gpu}\n"), "s.yaml:4:33: `host.gres` is for Slurm hosts"},
		{"Slurm gres", with("host: {kind: slurm, gres: 'gpu 8'}\n"), "s.yaml:4:27: `host.gres` cannot be `gpu 8`; write what you would give to sbatch, like gpu:h200:8"},
		{"Slurm option as partition", with("host: {kind: slurm, partition: -x}\n"), "s.yaml:4:32: `host.partition` cannot be `-x`"},
		{"Slurm memory without a unit", with("host: {kind: slurm, memory: 400}\n"), "s.yaml:4:29: host.memory: `400` has no unit"},
		{"Slurm memory 0", with("host: {kind: slurm, memory: 0GB}\n"), "s.yaml:4:29: host.memory: it is 0"},
		{"Slurm time limit", with("host: {kind: slurm, time_limit: 0h}\n"), "s.yaml:4:33:"},
		{"Slurm queue limit", with("host: {kind: slurm, queue_limit: soon}\n"), "s.yaml:4:34: host.queue_limit: `soon`"},
		{"Slurm parallel", with("host: {kind: slurm, parallel: 0}\n"), "s.yaml:4:31: `host.parallel`"},
		{"Slurm cpus", with("host: {kind: slurm, cpus: 2.5}\n"), "s.yaml:4:27: `host.cpus`"},
		{"Slurm work folder", with("host: {kind: slurm, work_dir: /w%j}\n"), "s.yaml:4:14: `host.work_dir` `/w%j` cannot be used with Slurm"},
		{"Slurm ssh config without an address", with("host: {kind: slurm, ssh_config: x}\n"), "s.yaml:4:14: `host.ssh_config` without an address"},
		{"Slurm patience", with("host: {kind: slurm, tuner_gone: 20s}\n"), "s.yaml:4:33: `host.tuner_gone` `20s` is too short for a Slurm host"},
		{"Slurm and a last server", with("host: {kind: slurm}\nfinish: {launch: best}\n"), "s.yaml:5:18: `finish.launch` best is not for Slurm hosts"},
		{"misspelt Slurm key", with("host: {kind: slurm, partion: gpu}\n"), "did you mean `partition`?"},
		{"bad kind", with("host: {kind: simulatd}\n"), "`host.kind` cannot be `simulatd`; did you mean `simulated`?"},
		{"simulated key on a local host", with("host: {kind: local, profile: kimi-8x96}\n"), "s.yaml:4:21: `host.profile` is for simulated hosts"},
		{"gate", with("quality: {gate: {}}\n"), "`quality` with a gate is not in this version"},
		{"rate", "server: {model: m}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl, load: {rate: [1]}}\n", "`workload.load.rate` is not in this version, which has concurrency"},
		{"container", "server: {model: m, container: {image: x}}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\n", "`server.container.runtime` is missing"},
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
		{"recover", with("recover: adpot\n"), "s.yaml:4:10: `recover` cannot be `adpot`; did you mean `adopt`?"},
		{"adoption over ssh", with("recover: adopt\nhost: {kind: ssh, address: box}\n"), "s.yaml:4:10: `recover` adopt is for local and simulated hosts, not for ssh; write recover: reclaim"},
		{"adoption over Slurm", with("host: {kind: slurm}\nrecover: adopt\n"), "s.yaml:5:10: `recover` adopt is for local and simulated hosts, not for slurm"},
		{"adoption of a container", "server: {model: m, container: {runtime: docker, image: x}}\nspace: {hicache-size: [0]}\nworkload: {file: prompts.jsonl}\nrecover: adopt\n", "s.yaml:4:10: `recover` adopt is for local and simulated hosts, not for a server in a container"},
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
