package sglang

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
)

// Version is a release of SGLang: 0.5.23, 0.4.6.post5, 0.5.24rc1. The zero value is "unknown".
type Version struct {
	Major, Minor, Patch int
	Post                int  // .postN
	Pre                 bool // a release candidate or development build: before the release
}

var versionShape = regexp.MustCompile(`(?i)(\d+)\.(\d+)(?:\.(\d+))?(?:[-_.]?post(\d+))?([-_.]?(?:rc|a|b|alpha|beta|dev)\.?\d+)?`)

// ParseVersion finds the first version in a text: "sglang 0.5.23", "v0.4.6.post5", "0.5.24rc1",
// "0.5.10.dev12+gabc", the tag "v0.5.5.post3-cu129". What follows a plus is a build's own name and
// says nothing about flags.
func ParseVersion(text string) (Version, error) {
	m := versionShape.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("no SGLang version in %.60q (want something like 0.5.23)", text)
	}
	n := func(s string) int { v, _ := strconv.Atoi(s); return v } // digits only; absent is 0
	return Version{Major: n(m[1]), Minor: n(m[2]), Patch: n(m[3]), Post: n(m[4]), Pre: m[5] != ""}, nil
}

// Compare returns -1, 0 or 1 as v is older than, equal to or newer than w.
func (v Version) Compare(w Version) int {
	pre := func(b bool) int {
		if b {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch),
		cmp.Compare(v.Post, w.Post), cmp.Compare(pre(v.Pre), pre(w.Pre)))
}

// String spells the version as SGLang does, without a candidate's number.
func (v Version) String() string {
	s := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	if v.Post > 0 {
		s += fmt.Sprintf(".post%d", v.Post)
	}
	if v.Pre {
		s += ".dev"
	}
	return s
}
