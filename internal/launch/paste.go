package launch

import (
	"regexp"
	"strings"
)

// prompt is what a terminal or a README shows before a command: "$ ", "user@host:~$ ", "[root@gpu01 x]# ".
// A lone "# " is a comment.
var prompt = regexp.MustCompile(`^\s*(?:\([\w.-]+\)\s*)?(?:\$|\[?[\w.-]+@[\w.-]+(?:[: ][^\s#$]*)?\]?\s?[#$])\s+`)

// fence begins and ends a block of code in Markdown.
var fence = regexp.MustCompile("^\\s*(?:```|~~~)")

// unprompted takes prompts off pasted terminal lines, and the "> " off the lines that go on after one.
func unprompted(text string) string {
	lines := strings.Split(text, "\n")
	goesOn := false // the line before had a prompt and ends with a backslash
	for i, line := range lines {
		at := prompt.FindStringIndex(line)
		rest, continued := strings.CutPrefix(line, ">")
		switch {
		case goesOn && continued:
			line = rest
		case at != nil && !goesOn:
			line = line[at[1]:]
		}
		goesOn = (at != nil || goesOn) && strings.HasSuffix(line, `\`)
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// readMarkdown reads each block of code as a script of its own; what cannot be parsed, such as
// Python or JSON, starts no server. Lines keep their numbers.
func readMarkdown(source []byte, opt Options) ([]Launch, error) {
	var found []Launch
	var first error
	inside, start := false, 0
	lines := strings.Split(string(source), "\n")
	for i, line := range append(lines, "```") {
		switch {
		case !fence.MatchString(line):
			continue
		case inside:
			block := strings.Repeat("\n", start+1) + strings.Join(lines[start+1:i], "\n") + "\n"
			launches, err := readScript([]byte(block), opt)
			if err != nil && first == nil && launchWords.MatchString(block) {
				first = err
			}
			found = append(found, launches...)
		}
		inside, start = !inside, i
	}
	if len(found) > 0 {
		first = nil
	}
	return found, first
}

var launchWords = regexp.MustCompile(`sglang\.launch_server|\bsglang serve\b`)

// isMarkdown reports whether a file has blocks of code between fences.
func isMarkdown(text string) bool { return markdownFence.MatchString(text) }

var markdownFence = regexp.MustCompile("(?m)^\\s*(?:```|~~~)[\\w -]*$")
