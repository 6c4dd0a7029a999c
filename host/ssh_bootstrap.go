package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
)

// The two scripts that a login shell's sh gets on its standard input. Each is one compound command, so that the
// shell has read all of it before it runs any of it, and nothing follows until it has answered: a shell that
// reads ahead (dash) takes nothing away from the commands. Words in capitals are filled in, quoted.
//
// What counts in the output begins with the marker: a start-up file of the login shell may print before it.
const (
	askScript = `{
W=WORK
case $W in
'') W=${XDG_CACHE_HOME:-$HOME/.cache}/sgtune ;;
'~') W=$HOME ;;
'~/'*) W=$HOME/${W#'~/'} ;;
/*) ;;
*) W=$HOME/$W ;;
esac
printf '\n%s system %s %s\n' MARK "$(uname -s)" "$(uname -m)"
}
`
	runScript = `{
S=SUM
D=$W/bin
A=$D/sgtune-agent-NAME
fail() { printf '\n%s fail %s %s\n' MARK "$1" "$2"; exit 1; }
for c in mkdir chmod mv rm head; do command -v $c >/dev/null 2>&1 || fail missing $c; done
if command -v sha256sum >/dev/null 2>&1; then sum() { sha256sum; }
elif command -v shasum >/dev/null 2>&1; then sum() { shasum -a 256; }
elif command -v openssl >/dev/null 2>&1; then sum() { openssl dgst -sha256 -r; }
else fail missing sha256sum; fi
same() { s=$(sum <"$1") && [ "${s%% *}" = "$S" ]; }
umask 077
mkdir -p "$D" 2>/dev/null && [ -w "$D" ] || fail unwritable "$D"
[ -O "$D" ] && [ ! -L "$D" ] || fail owner "$D"
chmod 700 "$D" || fail unwritable "$D"
if [ ! -f "$A" ] || ! same "$A"; then
  for o in "$D"/.new-*; do kill -0 "${o##*-}" 2>/dev/null || rm -f "$o"; done
  T=$D/.new-$$
  printf '\n%s want\n' MARK
  head -c SIZE >"$T" 2>/dev/null || { rm -f "$T"; fail full "$D"; }
  same "$T" || { rm -f "$T"; fail damaged "$D"; }
  chmod 700 "$T" && mv -f "$T" "$A" || { rm -f "$T"; fail unwritable "$D"; }
fi
for o in "$D"/sgtune-agent-*; do [ "$o" = "$A" ] || rm -f "$o"; done
v=$("$A" version 2>&1) || fail noexec "$A: $v"
cd "$HOME" 2>/dev/null
EXPORTS
printf '\n%s run\n' MARK
exec WORD
}
`
)

// bootstrap has the shell at the other end become the agent.
func (l *SSH) bootstrap(c *LinkConn, word string) error {
	mark := "sgtune-" + newToken()
	// Why a script could not be sent is best told by what comes back.
	say := func(script string) { _, _ = io.WriteString(c.In, script) }
	say(strings.NewReplacer("WORK", shellQuote(l.opts.Work), "MARK", mark).Replace(askScript))
	told, err := afterMark(c.Out, mark)
	if err != nil {
		return err
	}
	system, arch, _ := strings.Cut(strings.TrimPrefix(told, "system "), " ")
	if system != "Linux" {
		return l.final("the machine runs %q: a host must run Linux", system)
	}
	program, sum, err := l.opts.Agent(arch)
	if err != nil {
		return l.final("%v", err)
	}
	say(strings.NewReplacer("SUM", sum, "NAME", sum[:min(16, len(sum))], "SIZE", fmt.Sprint(len(program)), "MARK", mark,
		"EXPORTS", l.exports(), "WORD", agentCommand(word)).Replace(runScript))
	if told, err = afterMark(c.Out, mark); err == nil && told == "want" {
		told, err = l.copyAgent(c, program, mark)
	}
	if err != nil {
		return err
	}
	if told != "run" {
		return l.refused(told)
	}
	return nil
}

// copyAgent sends the program and hears what became of it, which may be before all of it was taken.
func (l *SSH) copyAgent(c *LinkConn, program []byte, mark string) (string, error) {
	sent := make(chan error, 1)
	go func() {
		_, err := c.In.Write(program)
		sent <- err
	}()
	told, err := afterMark(c.Out, mark)
	if err != nil || told != "run" {
		_ = c.Close() // which ends the writing
	}
	if failed := <-sent; err == nil && told == "run" {
		err = failed
	}
	return told, err
}

// agentCommand is how the script starts the agent with a word. The load generator is nice to the server beside it.
func agentCommand(word string) string {
	if word == "serve" {
		return `"$A" serve "$W"`
	}
	return `nice -n 5 "$A" ` + shellQuote(word)
}

func (l *SSH) exports() string {
	var lines []string
	for name, value := range l.opts.Env {
		lines = append(lines, "export "+name+"="+shellQuote(value))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// shellQuote makes one word of a POSIX shell of a text, which must not hold a NUL.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// afterMark reads up to the next line that begins with the mark, and returns the rest of it.
func afterMark(r *bufio.Reader, mark string) (string, error) {
	last := ""
	for seen := 0; seen < mostChatter; {
		line, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if last != "" {
				return "", fmt.Errorf("the shell there ended after it said %q", last)
			}
			return "", fmt.Errorf("the shell there ended without a word: %w", err)
		}
		seen += len(line)
		text := strings.TrimSpace(string(line))
		if told, ok := strings.CutPrefix(text, mark+" "); ok {
			return told, nil
		}
		if text != "" {
			last = fmt.Sprintf("%.200s", text)
		}
	}
	return "", fmt.Errorf("the shell there does not run a script; it said %q", last)
}
