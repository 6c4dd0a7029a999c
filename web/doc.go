// Package web serves the pages over finished and running studies: the list, a study with its verdict, its trials,
// a trial with its log, a comparison, a launch profile. Pages are rendered here, embedded in the binary and readable
// without JavaScript; with it they follow a running study by server-sent events, draw charts and take keys. All
// facts come through Reader, all files through Options.Evidence, out of which no name leads.
//
// What it is not: it starts no command and changes no row of a study. What a person asks of a running study is left with Options.Commands,
// and the process that runs the study takes it or says why not. It counts, sorts and cuts no trials itself: the store
// does (Lists), so that a page of 10,000 trials costs what one of 30 does.
//
// Words: Answers is the one place where a study's answer becomes words; the terminal prints them too. A state is
// shown by a Mark: shape, word and colour class together.
//
// Safety (design: "the web page"): it binds to loopback unless there is a token; Host and Origin of a request are
// checked, the token is compared in constant time, every response carries a strict Content-Security-Policy and the
// id of its request, which the log repeats.
//
// Reading order: server.go (Reader, New, routes), security.go (who may ask), serve.go (the listener), page.go (what
// all pages share, error pages), static.go (embedded files); answer.go, mark.go and words.go (the words); then one
// file per page: studies.go, study.go with study_facts.go, study_live.go and failures.go, trials.go, trial.go,
// compare.go, export.go with profile.go, newstudy.go with newstudy_form.go (its text as a form), newstudy_change.go (what
// a changed form asks for), newstudy_yaml.go and newstudy_write.go (places of the text, and a change of one),
// report.go with report_markdown.go (a study as one file);
// files.go and logview.go with logscan.go and logindex.go (a log of any size, a window at a time); charts*.go
// (package chart); live.go (streams), journal.go, api.go with api_trials.go, metrics.go; form.go, ask.go and
// ask_words.go (what may be asked of a running study, and what that loses).
package web
