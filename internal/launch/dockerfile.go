package launch

import (
	"encoding/json"
	"regexp"
	"strings"
)

var instruction = regexp.MustCompile(`^(?i)(FROM|ARG)\s+\S`)

// isDockerfile reports whether a text is a Dockerfile.
func isDockerfile(base, first string) bool {
	return instruction.MatchString(first) || strings.HasPrefix(base, "Dockerfile") || strings.HasSuffix(base, ".Dockerfile")
}

// readDockerfile reads what an image starts: ENTRYPOINT and CMD of the last stage, with its ENV.
func readDockerfile(source []byte, opt Options) ([]Launch, error) {
	var entry, cmd []string
	a := around{kind: KindDockerfile, env: map[string]string{}}
	box := &Container{Runtime: "docker"}
	a.container = box
	text := string(source)
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line, start := strings.TrimSpace(lines[i]), i+1
		if line == "" || line[0] == '#' {
			continue
		}
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			if next := strings.TrimSpace(lines[i]); next == "" || next[0] != '#' {
				line = strings.TrimSuffix(line, `\`) + " " + next
			}
		}
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		switch strings.ToUpper(word) {
		case "FROM":
			box.Image, _, _ = strings.Cut(rest, " ")
			entry, cmd, a.version = nil, nil, imageVersion(box.Image)
		case "ENV":
			dockerEnv(a.env, rest)
		case "WORKDIR":
			a.dir = rest
		case "RUN":
			if m := requirement.FindStringSubmatch(rest); m != nil {
				a.version = m[1]
			}
		case "ENTRYPOINT":
			entry, cmd, a.line = dockerWords(rest), nil, start
		case "CMD":
			cmd, a.line = dockerWords(rest), start
		}
	}
	return commandWords(append(entry, cmd...), a, opt), nil
}

// dockerWords reads the JSON form of CMD, or the shell form.
func dockerWords(rest string) []string {
	var words []string
	if json.Unmarshal([]byte(rest), &words) == nil {
		return words
	}
	return []string{"sh", "-c", rest}
}

// dockerEnv reads ENV A=1 B="2" and the old form ENV A 1.
func dockerEnv(env map[string]string, rest string) {
	words := unitWords(rest)
	if len(words) > 0 && !strings.Contains(words[0], "=") {
		env[words[0]] = strings.TrimSpace(strings.TrimPrefix(rest, words[0]))
		return
	}
	for _, w := range words {
		if m := assignment.FindStringSubmatch(w); m != nil {
			env[m[1]] = m[2]
		}
	}
}
