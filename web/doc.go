// Package web serves a few small pages over finished and running studies: the list, one study, one
// trial. Pages are rendered here, embedded in the binary and readable without JavaScript; with it
// they follow a running study by server-sent events. All facts come through Reader.
//
// What it is not: it starts no command, changes no row, and reads no file: a path of a request
// never reaches the file system.
//
// Safety (design: "the web page"): it binds to loopback unless there is a token; Host and Origin of
// a request are checked, the token is compared in constant time, and every response carries a
// strict Content-Security-Policy.
//
// Reading order: server.go (Reader, New, routes), security.go (who may ask), serve.go (the
// listener), then one file per page: studies.go, study.go, trial.go, live.go, api.go; words.go has
// the wording they share.
package web
