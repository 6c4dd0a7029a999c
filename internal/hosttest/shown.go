package hosttest

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// Shown is what the tests read of sgtune show --json.
type Shown struct {
	State   string  `json:"state"`
	Verdict Verdict `json:"verdict"`
	Trials  []Trial `json:"trials"`
	Events  []struct {
		Kind string `json:"kind"`
		Text string `json:"text"`
	} `json:"events"`
}

// Verdict is the study's answer, with the interval of the gain.
type Verdict struct {
	Answer string   `json:"answer"`
	Gain   float64  `json:"gain"`
	Low    *float64 `json:"gain_low"`
	High   *float64 `json:"gain_high"`
	Trial  *int     `json:"trial"` // whose configuration was compared with the baseline
}

// Trial is one trial; Raw is all that is shown of it.
type Trial struct {
	Number  int            `json:"number"`
	Role    string         `json:"role"`
	State   string         `json:"state"`
	Outcome string         `json:"outcome"`
	Cause   string         `json:"cause"`
	Config  map[string]any `json:"config"`
	Value   *float64       `json:"value"`
	Void    string         `json:"void"`
	Raw     string         `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Trial) UnmarshalJSON(b []byte) error {
	type plain Trial
	if err := json.Unmarshal(b, (*plain)(t)); err != nil {
		return err
	}
	t.Raw = string(b)
	return nil
}

// Finished are the trials that have ended, by number, as they are shown.
func (s Shown) Finished() map[int]string {
	rows := map[int]string{}
	for _, trial := range s.Trials {
		if trial.State != "running" && trial.State != "waiting" {
			rows[trial.Number] = trial.Raw
		}
	}
	return rows
}

// Show reads the database as another program does; the zero Shown where there is no study in it yet.
func (s *Study) Show() Shown {
	s.T.Helper()
	cmd, out := s.Command("show", s.Name, "--db", s.DB(), "--json")
	if cmd.Run() != nil {
		return Shown{}
	}
	b, err := os.ReadFile(out)
	if err != nil {
		s.T.Fatal(err)
	}
	var shown Shown
	if err := json.Unmarshal(b, &shown); err != nil {
		s.T.Fatalf("show --json: %v\n%s", err, b)
	}
	return shown
}

// winner is the configuration that the verdict is about.
func (s Shown) winner(t *testing.T) string {
	t.Helper()
	for _, trial := range s.Trials {
		if n := s.Verdict.Trial; n != nil && trial.Number == *n && len(trial.Config) > 0 {
			return fmt.Sprint(trial.Config) // maps are printed in order
		}
	}
	t.Errorf("the verdict names no trial that is there: %+v", s.Verdict)
	return ""
}

// SameAnswer compares the verdicts of two complete studies: winner and class are the same, and the intervals overlap.
func SameAnswer(t *testing.T, name string, want, got Shown) {
	t.Helper()
	w, g := want.Verdict, got.Verdict
	wanted, winner := want.winner(t), got.winner(t)
	if got.State != "complete" || g.Answer != w.Answer || winner != wanted {
		t.Errorf("%s: %s, %q, %s; want complete, %q, %s", name, got.State, g.Answer, winner, w.Answer, wanted)
	}
	if w.Low == nil || w.High == nil || g.Low == nil || g.High == nil {
		t.Errorf("%s: no interval: %+v, %+v", name, w, g)
		return
	}
	if *g.Low > *w.High || *w.Low > *g.High {
		t.Errorf("%s: the intervals do not overlap: %.3f to %.3f, %.3f to %.3f", name, *w.Low, *w.High, *g.Low, *g.High)
	}
}
