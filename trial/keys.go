package trial

import (
	"cmp"
	"net/http"
	"strings"

	"sgtune/benchmark"
	"sgtune/host"
	"sgtune/sglang"
)

// ServerTarget is how requests reach a server launched with a configuration: where it listens, and with its own keys.
func ServerTarget(end host.Endpoint, server sglang.Server, c sglang.Config) benchmark.Target {
	user, admin := serverKeys(server, c)
	return benchmark.Target{URL: end.URL, Dial: end.Dial, Header: bearer(user), Admin: bearer(admin)}
}

// serverKeys are a server's api key and admin key, "" for none: those of its flags, which come last on the
// command line, else those of the user's command (a shell's -c holds many words in one).
func serverKeys(server sglang.Server, c sglang.Config) (user, admin string) {
	flags := sglang.Merge(server.Flags, c)
	defer func() { user, admin = cmp.Or(flags.Text("api-key"), user), cmp.Or(flags.Text("admin-api-key"), admin) }()
	words := strings.Fields(strings.Join(server.Command, " "))
	for i, word := range words {
		name, value, inline := strings.Cut(word, "=")
		if !inline && i+1 < len(words) {
			value = words[i+1]
		}
		switch value = strings.Trim(value, `'"`); name {
		case "--api-key":
			user = value
		case "--admin-api-key":
			admin = value
		}
	}
	return user, admin
}

// bearer is the header that carries a key, nil for none.
func bearer(key string) http.Header {
	if key == "" {
		return nil
	}
	return http.Header{"Authorization": {"Bearer " + key}}
}
