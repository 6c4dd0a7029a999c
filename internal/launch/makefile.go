package launch

import (
	"path/filepath"
	"regexp"
	"strings"
)

var (
	makeAssign = regexp.MustCompile(`^(?:export[ \t]+|override[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*(\?=|::?=|\+=|=)[ \t]*(.*)$`)
	makePhony  = regexp.MustCompile(`(?m)^\.PHONY[ \t]*:`)
	makeUse    = regexp.MustCompile(`\$\$|\$\(([\w.-]+)\)|\$\{([\w.-]+)\}`)
)

// isMakefile reports whether a source is a Makefile, by its name or its .PHONY line.
func isMakefile(base, text string) bool {
	return strings.HasPrefix(base, "Makefile") || base == "makefile" || base == "GNUmakefile" || filepath.Ext(base) == ".mk" || makePhony.MatchString(text)
}

// readMakefile reads the recipes of a Makefile as a script: its variables are put in as text, as make
// does, and the marks before a command (@, -, +) are dropped. Lines keep their numbers.
func readMakefile(source []byte, opt Options) ([]Launch, error) {
	vars := map[string]string{}
	lines := strings.Split(string(source), "\n")
	goesOn := false // the recipe line before ends with a backslash
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case goesOn || strings.HasPrefix(line, "\t"):
			line = strings.TrimPrefix(line, "\t")
			if !goesOn {
				line = strings.TrimLeft(line, "@+- \t")
			}
			goesOn = strings.HasSuffix(line, `\`)
			lines[i] = makeExpand(line, vars, 0)
			continue
		case !strings.HasPrefix(line, "#"):
			for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
				lines[i] = ""
				i++
				line = strings.TrimRight(strings.TrimSuffix(line, `\`), " \t") + " " + strings.TrimSpace(lines[i])
			}
			makeSet(line, vars, opt)
		}
		lines[i] = ""
	}
	return readScript([]byte(strings.Join(lines, "\n")), opt)
}

// makeSet keeps what an assignment sets.
func makeSet(line string, vars map[string]string, opt Options) {
	m := makeAssign.FindStringSubmatch(line)
	if m == nil {
		return
	}
	name, value := m[1], m[3]
	if at := strings.Index(value, " #"); at >= 0 {
		value = value[:at]
	}
	value = strings.TrimRight(value, " \t")
	was, set := vars[name]
	switch m[2] {
	case "+=":
		if set {
			value = was + " " + value
		}
	case "?=":
		if opt.Lookup != nil {
			if outside, ok := opt.Lookup(name); ok {
				was, set = outside, true
			}
		}
		if set {
			value = was
		}
	}
	if len(value) <= maxValue {
		vars[name] = value
	}
}

// makeExpand puts the values of variables in; what is not known, or calls a function, stays as it is
// and is unknown to the shell reader too.
func makeExpand(text string, vars map[string]string, depth int) string {
	if depth > 8 || len(text) > maxValue {
		return text
	}
	return makeUse.ReplaceAllStringFunc(text, func(use string) string {
		if use == "$$" {
			if depth > 0 {
				return use
			}
			return "$"
		}
		if value, ok := vars[use[2:len(use)-1]]; ok {
			return makeExpand(value, vars, depth+1)
		}
		return use
	})
}
