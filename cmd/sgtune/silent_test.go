package main

import (
	"strings"
	"testing"
	"time"

	"sgtune/store"
	"sgtune/tuner"
)

// TestSilentStudy lists and shows a study whose tuner is gone as the page does: stopped, since when. Scripts go on to
// read what is stored of it.
func TestSilentStudy(t *testing.T) {
	t.Parallel()
	path := finishedDB(t)
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	gone := time.Now().Add(-48 * time.Hour)
	if err := db.Hear(t.Context(), "begun", tuner.Heard{At: gone, Since: gone, PID: 4711}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	since := "the tuner (process 4711) has not been heard from since " + gone.Local().Format("Mon 2 Jan 15:04")
	for _, test := range []struct {
		args []string
		want []string
		not  string
	}{
		{[]string{"ls"}, []string{"stopped", "begun (SIMULATED)", "STOPPED: " + since}, "RUNNING"},
		{[]string{"show", "begun"}, []string{"begun    stopped  SIMULATED", "STOPPED  " + since, "sgtune tune with the same study file continues it."}, "unning"},
		{[]string{"ls", "--json"}, []string{`"state": "running"`, `"tuner_silent": true`}, ""},
		{[]string{"show", "begun", "--json"}, []string{`"state": "running"`, `"tuner_silent": true`}, ""},
		{[]string{"show", "night", "--json"}, []string{`"state": "complete"`}, "tuner_silent"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			code, out, errs := call(t, append(test.args, "--db", path)...)
			if code != 0 || errs != "" {
				t.Fatalf("exit %d: %s", code, errs)
			}
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
			if test.not != "" && strings.Contains(out, test.not) {
				t.Errorf("%q in:\n%s", test.not, out)
			}
		})
	}
}
