// Package webspeed measures the page beside optuna-dashboard: the same trials in both, both on loopback, a browser
// that was never used before for each visit, the two in turn, medians and ratios of one run in a Markdown table.
// Budgets that are ratios or bytes fail the test; times alone do not, since machines differ.
//
// It needs chromium, and optuna-dashboard in a virtual environment of its own (setup.sh DIR, then SGTUNE_PEER=DIR);
// without the second it is skipped. Its figures mean something on a machine that does nothing else: make test-webspeed,
// a quarter of an hour. SGTUNE_SIZES="30 1000" and SGTUNE_ROUNDS make it shorter.
package webspeed
