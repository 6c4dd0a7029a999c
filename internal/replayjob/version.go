package replayjob

import "runtime/debug"

// Version is the VCS tag or revision this program was built from: "v1.2.0", "devel-0123456789ab+changes", or
// "devel" where the build carries none.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+changes"
			}
		}
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	if rev == "" {
		return "devel"
	}
	return "devel-" + rev + dirty
}
