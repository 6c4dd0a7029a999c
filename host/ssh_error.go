package host

import (
	"fmt"
	"strings"
)

// sshStatus is what ssh ends with when it has failed itself.
const sshStatus = 255

// sshTroubles are what ssh says when it fails, in the order in which they are looked for: the first cause before its
// consequences. A final one does not pass by itself.
var sshTroubles = []struct {
	sign, text string
	final      bool
}{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key has changed: if that is right (a new installation), remove the old key with ssh-keygen -R and log in once by hand; if not, somebody may be listening", true},
	{"Host key verification failed", "its host key is not known here: log in once by hand with ssh and compare the fingerprint", true},
	{"No matching host key", "none of its host keys is of a type this ssh accepts: see HostKeyAlgorithms in ssh_config(5)", true},
	{"Bad configuration option", "the ssh configuration is wrong", true},
	{"Bad owner or permissions", "ssh refuses a file because others may write to it", true},
	{"Can't open user config file", "the ssh configuration file cannot be read", true},
	{"Could not resolve hostname", "no machine of that name is known: check the address, or your network", false},
	{"Too many authentication failures", "it refused the login after too many keys: name the right one with IdentityFile and IdentitiesOnly in your ssh configuration", false},
	{"Permission denied", "it accepted none of your keys: log in once by hand with ssh; sgtune cannot type a password, so a key or an ssh-agent is needed", false},
	{"Connection refused", "the connection was refused: no ssh server listens there (port, machine down?)", false},
	{"No route to host", "there is no route to it: check the address, the VPN, the network", false},
	{"Network is unreachable", "the network cannot be reached: check the VPN, the network", false},
	{"timed out", "it did not answer in time: is it up, is a firewall or a VPN between?", false},
	{"Session open refused", "it allows no more sessions in one connection (MaxSessions of its sshd)", false},
	{"Connection reset", "it closed the connection", false},
	{"Connection closed", "it closed the connection", false},
	{"Broken pipe", "the connection broke", false},
}

// trouble says in one line why ssh failed, and what to do. err is what we noticed ourselves.
func (l *SSH) trouble(status int, messages string, err error) *LinkError {
	var lines []string
	for line := range strings.Lines(messages) {
		// What ssh says about a control socket that is there no more, before it goes on without.
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Control socket connect(") {
			lines = append(lines, line)
		}
	}
	e := &LinkError{Host: l.opts.Address}
	if status == sshStatus {
		for _, t := range sshTroubles {
			for _, line := range lines {
				if strings.Contains(line, t.sign) {
					e.Text, e.Final = fmt.Sprintf("%s (ssh: %s)", t.text, strings.Trim(line, "@ ")), t.final
					return e
				}
			}
		}
	}
	e.Text = err.Error()
	if len(lines) > 0 {
		e.Text += " (ssh: " + lines[len(lines)-1] + ")"
	}
	if status > 0 {
		e.Text += fmt.Sprintf("; exit status %d", status)
	}
	return e
}

func (l *SSH) final(format string, args ...any) *LinkError {
	return &LinkError{Host: l.opts.Address, Text: fmt.Sprintf(format, args...), Final: true}
}

// refused puts what the script complains of into words.
func (l *SSH) refused(told string) *LinkError {
	kind, what, _ := strings.Cut(strings.TrimPrefix(told, "fail "), " ")
	switch kind {
	case "missing":
		return l.final("the command %s is missing there: install it", what)
	case "unwritable":
		return l.final("cannot write to %s there: give a work folder that is yours", what)
	case "owner":
		return l.final("%s there belongs to somebody else, or is a link: give a work folder that is yours", what)
	case "full":
		return l.final("cannot store the agent in %s there: is the disk full?", what)
	case "noexec":
		return l.final("the agent cannot be run there (%s): give a work folder on a file system that is not mounted noexec", what)
	case "damaged":
		return &LinkError{Host: l.opts.Address, Text: "the agent arrived damaged in " + what}
	}
	return l.final("the start-up script failed: %s", told)
}
