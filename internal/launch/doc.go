// Package launch reads how an SGLang server is launched today, from whatever a person has: a shell
// or Slurm script, a systemd unit, a compose file, a Kubernetes manifest, a Dockerfile, SGLang's own
// yaml, a plain line of arguments, a running process, or a server's URL. From that it makes a study
// file whose baseline is what runs today.
//
// Nothing it reads is ever executed. What only running it would tell (the output of a command, an
// argument of the script) stays in the result as it is written there, like $(nproc) or ${1}.
//
// It is not the place for what flags mean: that is package sglang. And it starts no server.
//
// Reading order: launch.go (what a launch is, and which reader takes a source), command.go (words to
// a launch: finding SGLang's launcher behind wrappers and containers), then one file per source:
// script*.go, unit.go, yaml.go, compose.go, kubernetes.go, configyaml.go, dockerfile.go, process.go,
// server.go. plan.go turns a launch into the parts of a study, box.go the options of docker run,
// advice.go says what is odd about it, space.go proposes what to search, study.go writes the file.
//
//	launches, err := launch.Read("serve.sh", source, launch.Options{})
//	plan := launch.NewPlan(launches[0], launch.PlanOptions{Version: v})
//	plan.WriteStudy(out)
package launch
