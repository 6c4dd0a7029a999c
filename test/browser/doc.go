// Package browser tests the web page in a real Chromium: what is wrong for people who see, hear or tap it differently (axe-core), layout
// on a phone and a desk, charts against their tables, and every page's task. Each page comes from the real handler over a real database
// on a real loopback listener. Whatever the browser complains of (console, exceptions, blocked by the Content-Security-Policy, responses
// of 400 and above) fails the test that caused it.
//
// It needs Chromium, a font and axe-core (test/browser/setup.sh DIR). Without them it is skipped; with SGTUNE_BROWSER=required it fails.
package browser
