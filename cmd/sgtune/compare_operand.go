package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sgtune/store"
	"sgtune/tuner"
)

// trialWord finds STUDY:12, STUDY:baseline and STUDY:best, and STUDY/12 as the folders of a study's files
// are called; a study's name has neither sign.
var trialWord = regexp.MustCompile(`^([^:/]+)[:/]([0-9]+|baseline|best)$`)

// plainTrial finds a trial of --study, or of the newest study.
var plainTrial = regexp.MustCompile(`^([0-9]+|baseline|best)$`)

// operands reads both sides. base and candidate are what the person wrote for each: one word, or the
// words around "--".
func (o *compareOptions) operands(ctx context.Context, base, candidate []string) (*comparison, error) {
	c := &comparison{}
	var db *store.DB
	defer func() {
		if db != nil {
			_ = db.Close() // nothing was written
		}
	}()
	var problems tuner.Problems
	for i, words := range [][]string{base, candidate} {
		t, isTrial := o.trial(words)
		var err error
		if isTrial && db == nil {
			if db, err = openForReading(ctx, o.db); err != nil {
				return nil, err
			}
		}
		if isTrial {
			c.sides[i], c.studies[i], err = trialSide(ctx, db, t)
		} else {
			c.sides[i], err = o.reports(words)
		}
		var found tuner.Problems
		switch {
		case errors.As(err, &found): // say the mistakes of both sides at once
			problems = append(problems, found...)
		case err != nil:
			return nil, err
		default:
			c.sides[i].role = [2]string{"base", "candidate"}[i]
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}

// trial tells whether a side is a trial. A file of that name goes first.
func (o *compareOptions) trial(words []string) (trialOperand, bool) {
	if len(words) != 1 {
		return trialOperand{}, false
	}
	word := words[0]
	if _, err := os.Stat(word); err == nil {
		return trialOperand{}, false
	}
	if plainTrial.MatchString(word) {
		return trialOperand{o.study, word}, true
	}
	if m := trialWord.FindStringSubmatch(word); m != nil {
		return trialOperand{m[1], m[2]}, true
	}
	return trialOperand{}, false
}

// mostReports bounds a side: nobody replays so often, and a folder of something else is told soon.
const mostReports = 1000

// reports reads the replay reports of one side: files, folders, or lists of them with commas.
func (o *compareOptions) reports(words []string) (*side, error) {
	var paths []string
	var problems tuner.Problems
	for _, word := range words {
		found, err := reportPaths(word)
		var mistakes tuner.Problems
		if errors.As(err, &mistakes) {
			problems = append(problems, mistakes...)
		} else if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(paths) > mostReports {
		return nil, usagef("%s: %d files are too many for one side; name at most %d reports", words[0], len(paths), mostReports)
	}
	s := &side{name: strings.Join(words, " "), noun: "report"}
	for _, path := range paths {
		l, err := readReport(path)
		var mistakes tuner.Problems
		if errors.As(err, &mistakes) {
			problems = append(problems, mistakes...)
			continue
		} else if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(s.launches, func(other *comparedLaunch) bool { return other.digest == l.digest }); i >= 0 {
			problems = append(problems, tuner.Mistake{File: path, Text: "is the same report as " + s.launches[i].name + "; each must come from a replay of its own, name it once"})
			continue
		}
		s.launches = append(s.launches, l)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return s, nil
}

// reportPaths are the files that one word means. A file whose name has a comma goes first.
func reportPaths(word string) ([]string, error) {
	info, err := os.Stat(word)
	switch {
	case err == nil && info.IsDir():
		return folderReports(word)
	case err == nil:
		return []string{word}, nil
	case !strings.Contains(word, ","):
		return nil, noOperand(word, err)
	}
	var paths []string
	var problems tuner.Problems
	for part := range strings.SplitSeq(word, ",") {
		info, err := os.Stat(part)
		switch {
		case part == "":
			problems = append(problems, tuner.Mistake{File: word, Text: "has a comma without a name beside it; write a.json,b.json"})
		case err != nil:
			var mistakes tuner.Problems
			errors.As(noOperand(part, err), &mistakes)
			problems = append(problems, mistakes...)
		case info.IsDir():
			found, err := folderReports(part)
			if err != nil {
				return nil, err
			}
			paths = append(paths, found...)
		default:
			paths = append(paths, part)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return paths, nil
}

// folderReports are the *.json files of a folder, by name.
func folderReports(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, mistakef(folder, "cannot be read: %s", reason(err))
	}
	var paths []string
	for _, e := range entries {
		if name := e.Name(); filepath.Ext(name) == ".json" && !e.IsDir() && !strings.HasPrefix(name, ".") {
			paths = append(paths, filepath.Join(folder, name))
		}
	}
	if len(paths) == 0 {
		return nil, mistakef(folder, "is a folder without a .json file; name one with reports of sgtune replay --out")
	}
	return paths, nil
}

// noOperand says what a word that is neither a file nor a trial should be.
func noOperand(word string, err error) error {
	switch {
	case word == "":
		return mistakef("sgtune compare", "an operand is empty; write a report, a folder, or a trial as STUDY:12")
	case strings.HasPrefix(word, "-"):
		return mistakef(word, "is no file; flags stand before `--`")
	case !errors.Is(err, os.ErrNotExist):
		return mistakef(word, "cannot be read: %s", reason(err))
	}
	if study, which, ok := strings.Cut(word, ":"); ok && !strings.Contains(study, "/") {
		return mistakef(word, "is no file and no trial: `%.40s` should be a number, baseline or best", which)
	}
	return mistakef(word, "does not exist; name a report of sgtune replay --out, a folder of them, or a trial as STUDY:12")
}
