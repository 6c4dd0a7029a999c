// Package webbed makes studies for the tests of the web page: nights of any length that look like real ones, with
// every kind of failure (Make), and small studies in each state that a study can stand in (Stand). It is the one
// generator of pages' test data; the same seed gives the same night.
package webbed
