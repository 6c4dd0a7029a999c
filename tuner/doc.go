// Package tuner runs a study: it reads the study file, proposes configurations, says which of them
// may be launched, has trials run one after the other, and ends with a verdict.
//
// It is not: launching and measuring (trial, benchmark), the database (store implements Store), the
// host (cmd wires Host), what a page shows (web).
//
// A study is
//
//	hand over -> baseline -> search -> confirm -> verdict -> finish
//
// and Loop is that line. It keeps nothing between turns that is not in the store: each turn reads
// the history, lets the phases say in order what comes next, stores it and runs it. To continue a
// study that was killed is therefore nothing special.
//
// Reading order:
//
//	loop.go       Loop: the line above, one turn, one launch
//	phase.go      what each phase launches: waiting rows, baseline, search
//	confirm.go    the last phase: candidate, number of launches, ABBA order
//	history.go    the questions the loop asks of the stored trials; reread.go reads them, as little as they need
//	turn.go       begin and what a turn needs: deadline, host facts, rows
//	handover.go   taking the host over and giving it back: before, after, notifications
//	command.go    what people ask of a running study
//	stop.go       why a study ends without a verdict: breaker, host, person; notify.go tells people, sleep.go sees to the clock
//	plan.go       what still fits; status.go shows it
//	verdict.go    the answer; job.go the hours of the whole job
//	best.go       picks the candidate and breaks ties, by what is expected of it (standing.go)
//	noise.go      how far equal launches differ; drift.go whether the host itself changed over the night
//	pruner.go     when a load level is hopeless: pairing.go its windows beside those of the same requests,
//	              sequential.go the bound that holds at every look
//
//	sampler.go    the Sampler names; sobol.go the start, goptuna.go TPE, fixed.go lists
//	physics.go    the physics sampler: tuner/physics as a Sampler. physics_space.go codes a space,
//	              physics_facts.go what is known beforehand, physics_observe.go a trial; physics_why.go says
//	              why, physics_view.go what the models believe, physics_map.go draws memory; stored.go asks
//	              them of a stored study
//	frontier.go   what failures and low-water marks teach about memory
//	constraint.go the rules of admission; admission.go puts them together
//	study.go      Study, Record, Verdict, Store, Sampler: the words everybody shares
//	studyfile.go  the study file; check.go what `sgtune check` says of it
package tuner
