package browser_test

import "testing"

// place is one page in one state.
type place struct {
	name string
	site string // of the shared ones
	path string
}

// everyPage are all pages of a study with a verdict, and the pages that belong to no study.
var everyPage = []place{
	{"studies", "states", "/"},
	{"studies in a state", "states", "/?state=running"},
	{"study", "night", "/studies/night"},
	{"study on a real host", "states", "/studies/better"},
	{"trials", "night", "/studies/night/trials"},
	{"trials filtered and sorted", "night", "/studies/night/trials?sort=-tok_s&outcome=gpu_oom&knob.mem-fraction-static=0.80..0.95"},
	{"trial", "night", "/studies/night/trials/2"},
	{"trial with its log at the evidence", "states", "/studies/better/trials/1"},
	{"trial with a search in its log", "states", "/studies/better/trials/1?q=line&warn=1"},
	{"comparison", "night", "/studies/night/compare?t=0,1,2"},
	{"comparison with all flags", "states", "/studies/better/compare?t=0,1,2&all=1"},
	{"profile", "night", "/studies/night/export"},
	{"profile of a failed trial", "states", "/studies/better/export?t=1"},
	{"new study", "night", "/new?from=night"},
	{"ask to stop", "states", "/studies/running/ask/stop-now"},
	{"ask to launch", "states", "/studies/running/ask/enqueue"},
	{"ask to make void", "states", "/studies/running/ask/void?trial=2"},
	{"error", "states", missingPage},
	{"log in", "states", "/login"},
}

// everyState are the pages that look different in the states of a study.
var everyState = []place{
	{"no study", "none", "/"},
	{"no trial: study", "states", "/studies/begun"},
	{"no trial: trials", "states", "/studies/begun/trials"},
	{"running: study", "states", "/studies/running"},
	{"running: trials", "states", "/studies/running/trials"},
	{"running: trial", "states", "/studies/running/trials/6"},
	{"dirty: study", "states", "/studies/dirty"},
	{"dirty and better: study", "states", "/studies/dirty-better"},
	{"dirty: trials", "states", "/studies/dirty/trials"},
	{"all failed: study", "states", "/studies/allfailed"},
	{"no difference: study", "states", "/studies/keep"},
	{"unconfirmed: study", "states", "/studies/unconfirmed"},
	{"10,000 trials: studies", "many", "/"},
	{"10,000 trials: study", "many", "/studies/night"},
	{"10,000 trials: trials", "many", "/studies/night/trials?sort=-tok_s&page=100"},
	{"10,000 trials: trial", "many", "/studies/night/trials/9000"},
}

const missingPage = "/studies/nobody"

// open shows the page in a tab, with all its charts.
func (p place) open(t testing.TB, v view) *tab {
	t.Helper()
	tb := open(t, v, "about:blank")
	if p.path == missingPage {
		tb.expects("404")
	}
	tb.visit(read(t, p.site).url + p.path)
	if !v.noScript {
		tb.charts()
	}
	return tb
}

// each runs a test on pages, several at once.
func each(t *testing.T, places []place, test func(t *testing.T, p place)) {
	t.Helper()
	need(t)
	t.Parallel()
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}
