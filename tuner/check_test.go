package tuner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sgtune/sglang"
	"sgtune/trial"
	"sgtune/tuner"
)

var evening = time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)

func TestCheckCountsTheSpace(t *testing.T) {
	t.Parallel()
	s := mustParse(t, kimiFile)
	value := 1.0
	history := []*trial.Trial{{Role: trial.RoleBaseline, State: trial.Complete, Value: &value, Memory: kimi, Config: sglang.Config{"mem-fraction-static": 0.85, "chunked-prefill-size": 8192.0}}}
	r := tuner.Check(s, tuner.CheckInput{Facts: idle, History: history, Now: evening})
	got := map[string]int{}
	sum := r.Space.Admitted
	for _, e := range r.Space.Excluded {
		got[e.Rule] = e.Configurations
		sum += e.Configurations
		if len(e.Example) == 0 || e.Text == "" {
			t.Errorf("rule %s has no example: %+v", e.Rule, e)
		}
	}
	// 20 fractions x 6 sizes x 2 chunks. RAM: 56 and 300. No KV: 0.74 to 0.76 with the other four sizes.
	if r.Space.Configurations != 240 || sum != 240 || !r.Space.Exact {
		t.Errorf("%d configurations, %d admitted or excluded, exact %v; want 240", r.Space.Configurations, sum, r.Space.Exact)
	}
	// Host tokens: 8 GB holds 113,844 tokens: 0.85 and above (9 fractions); 16 GB holds 227,687: 0.93 only.
	want := map[string]int{"host RAM": 80, "KV tokens": 24, "host tokens": 2 * (9 + 1), "no repeat": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("excluded (-want +got):\n%s", diff)
	}
}

func TestCheckSamplesLargeSpaces(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "server: {model: m, flags: {tp-size: 8}}\nspace:\n  hicache-size: [0, 16, 56, 300]\n  chunked-prefill-size: {min: 64, max: 64000, step: 64}\n  schedule-conservativeness: {min: 0, max: 10, step: 0.1}\nworkload: {file: prompts.jsonl}\n")
	r := tuner.Check(s, tuner.CheckInput{Facts: idle, Now: evening})
	if r.Space.Exact || r.Space.Configurations != 4*1000*101 {
		t.Fatalf("%+v", r.Space)
	}
	if share := float64(r.Space.Admitted) / float64(r.Space.Configurations); share < 0.48 || share > 0.52 {
		t.Errorf("%.3f of it admitted, want about half", share)
	}
}

const night = `server: {model: m}
space: {hicache-size: [0, 16]}
workload: {file: prompts.jsonl, load: {concurrency: [40, 80, 160], cap: 5m}}
measure: {canary: 2m, fill: 4m}
confirm: {launches: 3}
`

func TestCheckPlan(t *testing.T) {
	t.Parallel()
	startup := 13 * time.Minute
	ran := func(n int, role trial.Role, took time.Duration) *trial.Trial {
		v := 1.0
		return &trial.Trial{
			Number: n, Role: role, State: trial.Complete, Value: &v, Startup: startup, Config: sglang.Config{"x": float64(n)},
			StartedAt: evening.Add(-took), EndedAt: evening,
		}
	}
	for _, tt := range []struct {
		name, file  string
		history     []*trial.Trial
		ready       time.Duration
		trial, full time.Duration
		trials      int
		ends        time.Duration // from now
		text        string
	}{
		// 12.5 + 2 + 4 + 1 min, two levels of 5 + 2.5 min and three.
		{"wall time", night + "budget: {wall: 9h}\n", nil, 12*time.Minute + 30*time.Second, 34*time.Minute + 30*time.Second, 42 * time.Minute, 8, 8*time.Hour + 55*time.Minute + 30*time.Second, "8 trials fit"},
		{"trials", night + "budget: {wall: 9h, trials: 3}\n", nil, 12*time.Minute + 30*time.Second, 34*time.Minute + 30*time.Second, 42 * time.Minute, 3, 6*time.Hour + 3*time.Minute, "3 trials fit"},
		{"until", night + "budget: {until: 02:00}\n", nil, 12*time.Minute + 30*time.Second, 34*time.Minute + 30*time.Second, 42 * time.Minute, 0, 3*time.Hour + 58*time.Minute, "0 trials fit"},
		{"learnt", night + "budget: {trials: 5}\n", []*trial.Trial{ran(0, trial.RoleBaseline, 30*time.Minute), ran(1, trial.RoleSearch, 20*time.Minute)}, startup, 20 * time.Minute, 30 * time.Minute, 3, 4 * time.Hour, "3 more trials"},
		{"simulated", strings.Replace(night, "server: {model: m}", "server: {model: m}\nhost: {kind: simulated, startup: 90s, time_scale: 100}", 1) + "budget: {trials: 2}\n", nil, 90 * time.Second, 23*time.Minute + 30*time.Second, 31 * time.Minute, 2, 4*time.Hour + 30*time.Second, "2 min 24 s from now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := tuner.Check(mustParse(t, tt.file), tuner.CheckInput{Facts: idle, History: tt.history, Now: evening})
			p := r.Plan
			if p.Ready != tt.ready || p.Trial != tt.trial || p.Full != tt.full || p.Trials != tt.trials || p.Ends.Sub(evening) != tt.ends {
				t.Errorf("ready %v trial %v full %v trials %d ends in %v; want %v %v %v %d %v",
					p.Ready, p.Trial, p.Full, p.Trials, p.Ends.Sub(evening), tt.ready, tt.trial, tt.full, tt.trials, tt.ends)
			}
			if p.Reserve != 6*p.Full || !strings.Contains(p.Text, tt.text) {
				t.Errorf("reserve %v, text %q, want it to say %q", p.Reserve, p.Text, tt.text)
			}
		})
	}
}

func TestReadyToLeaveAlone(t *testing.T) {
	t.Parallel()
	held := []tuner.GPUFact{{Index: 3, Name: "H20", Total: 96 << 30, Used: 71 << 30, Holders: []string{"pid 4711 (python3)"}}}
	for _, tt := range []struct {
		name, file string
		in         tuner.CheckInput
		want       string
	}{
		{"yes", night, tuner.CheckInput{}, "Ready to leave alone: yes, because 2 configurations are admitted"},
		{"GPUs held", night, tuner.CheckInput{Facts: tuner.HostFacts{GPUs: held}}, "no, because GPU memory is held by pid 4711 (python3) on GPU 3, and there is no before"},
		{"before frees them", night + "before: [systemctl, stop, x]\n", tuner.CheckInput{Facts: tuner.HostFacts{GPUs: held}}, "yes, because"},
		{"a ghost", night, tuner.CheckInput{Facts: tuner.HostFacts{GPUs: []tuner.GPUFact{{Used: 20 << 30}}}}, "somebody outside this container or machine on GPU 0"},
		{"idle drivers", night, tuner.CheckInput{Facts: tuner.HostFacts{GPUs: []tuner.GPUFact{{Used: 600 << 20}}}}, "yes, because"},
		{"port", night, tuner.CheckInput{Facts: tuner.HostFacts{PortHolders: []string{"pid 12"}}}, "is taken by pid 12"},
		{"leased", night, tuner.CheckInput{Facts: tuner.HostFacts{Lease: "pid 99"}}, "another sgtune holds this host: pid 99"},
		{"no time", night + "budget: {wall: 1h}\n", tuner.CheckInput{}, "the budget has room for 0 trials"},
		{"nothing admitted", strings.Replace(night, "[0, 16]", "[3000]", 1), tuner.CheckInput{Facts: idle}, "no configuration of the space is admitted"},
		{"flag", night, tuner.CheckInput{Flags: []string{"the installed SGLang has no --x"}}, "no, because the installed SGLang has no --x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.in.Now = evening
			if tt.in.Facts.MemAvailable == 0 {
				tt.in.Facts.MemAvailable, tt.in.Facts.CgroupHeadroom = 440e9, -1
			}
			r := tuner.Check(mustParse(t, tt.file), tt.in)
			if !strings.Contains(r.Verdict, tt.want) || r.Ready != strings.Contains(tt.want, "yes") {
				t.Errorf("ready %v: %q, want %q", r.Ready, r.Verdict, tt.want)
			}
		})
	}
}
