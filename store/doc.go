// Package store is the only memory between two runs of sgtune: one SQLite file with studies, trials,
// load levels, the names of sample files, events and commands. Big evidence (server logs, raw
// samples) lies in files beside it, named by the rows.
//
// What it promises:
//
//   - A call that returned nil has survived a power cut (WAL with a sync at every commit).
//   - A trial changes state only as trial.State.CanBecome allows, by a guarded update that touches
//     exactly one row; a finished trial never changes except for its void mark. A trigger repeats
//     the rule for whoever else opens the file.
//   - A row and its load levels are stored in one transaction.
//   - Each command is handed out once, whichever process asks; what several people ask at once is stored once.
//   - A sign of life of the process that runs a study changes no revision.
//   - A database written by a newer sgtune is refused, an older one is migrated.
//   - What a trial's row was given comes back equal; times come back in UTC.
//   - Texts are masked (sglang.Mask) before they are stored. Record.Source and Record.Identity are
//     masked by whoever wrote them: they are compared on resume and must not change here.
//
// What it is not: it holds no search state, decides nothing, and knows no SGLang flag.
//
// Reading order: store.go (open, transactions), migrate.go and migration/0001_init.sql (the
// tables; later files change them), trial.go, trialrow.go, level.go and void.go (the guarded rows), history.go (what the loop reads of them at every turn), study.go, query.go (what lists ask for), event.go,
// command.go, heard.go, tally.go, sample.go, backup.go; codec.go, mask.go and errors.go serve them all.
package store
