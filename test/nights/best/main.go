package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sgtune/test/nights/virtual"
	"sgtune/tuner"
)

func main() {
	runs := flag.Int("runs", 20_000, "noise-free launches before the climb")
	out := flag.String("out", "", "folder for STUDY.json, \"\" = print only")
	commit := flag.String("commit", "", "commit to note in the result")
	flag.Parse()
	for _, path := range flag.Args() {
		if err := find(path, *runs, *out, *commit); err != nil {
			fmt.Fprintln(os.Stderr, "best:", err)
			os.Exit(1)
		}
	}
}

func find(path string, runs int, out, commit string) error {
	study, err := tuner.ReadStudy(path)
	if err != nil {
		return err
	}
	start := time.Now()
	best, err := virtual.FindBest(context.Background(), study, runs, func(format string, args ...any) {
		fmt.Printf("%6.0fs "+format+"\n", append([]any{time.Since(start).Seconds()}, args...)...)
	})
	if err != nil {
		return err
	}
	best.Date, best.Commit = time.Now().Format(time.DateOnly), commit
	fmt.Println(best.Text())
	if out == "" {
		return nil
	}
	text, err := json.MarshalIndent(best, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, study.Name+".json"), append(text, '\n'), 0o600)
}
