package web_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/test/webbed"
	"sgtune/trial"
	"sgtune/tuner"
)

// TestPageLearnsAsShowDoes holds that what mattered on a study's page is what `sgtune show` makes of the same study, also
// of one that is longer than a night.
func TestPageLearnsAsShowDoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "keep")
	if err := webbed.Fill(t.Context(), f.db, webbed.Make("long", 150, 7)); err != nil {
		t.Fatal(err)
	}
	record, err := f.db.Study(t.Context(), "long")
	if err != nil {
		t.Fatal(err)
	}
	trials, err := f.db.Trials(t.Context(), "long")
	if err != nil {
		t.Fatal(err)
	}
	csv := func(trials []*trial.Trial) string {
		text := "Knob,Effect,80% range,Best value\n"
		for _, i := range tuner.Look(record, trials, nil).Importances {
			text += fmt.Sprintf("%s,%.1f%%,%.1f%% to %.1f%%,%s\n", i.Knob, 100*i.Effect, 100*i.Low, 100*i.High, sglang.FormatValue(i.Best))
		}
		return text
	}
	want := csv(trials)
	if want == csv(trials[len(trials)-100:]) {
		t.Fatal("this study cannot tell whether all of it was looked at")
	}
	w := get(t, f.handler(), "/api/v1/studies/long/charts/matter.csv")
	if diff := cmp.Diff(want, w.Body.String()); w.Code != http.StatusOK || diff != "" {
		t.Errorf("status %d (-show +page):\n%s", w.Code, diff)
	}
}
