package sglang

// refusedPatterns are how SGLang refuses flags, values and their combinations, before anything is
// started. What it refuses later is an exception; package trial tells those by their words.
var refusedPatterns = []pattern{
	{kind: "argparse_error", has: " error: argument --", level: fatal, phase: PhaseLaunch, re: `error: (?P<Msg>argument (?P<Flag>--[\w-]+)(?:/[^:]*)?: (?:invalid (?:\w+ value|choice): '(?P<Value>[^']*)')?.*)`},
	{kind: "argparse_error", has: " error: unrecognized arguments:", level: fatal, phase: PhaseLaunch, re: `error: (?P<Msg>unrecognized arguments: (?P<Flag>--[\w-]+)?(?:[= ](?P<Value>[^-\s]\S*))?.*)`},
	{kind: "argparse_error", has: " error: ambiguous option:", level: fatal, phase: PhaseLaunch, re: `error: (?P<Msg>ambiguous option: (?P<Flag>--[\w-]+).*)`},
	{kind: "argparse_error", has: " error: the following arguments are required:", level: fatal, phase: PhaseLaunch, re: `error: (?P<Msg>the following arguments are required: (?P<Flag>--[\w-]+)?.*)`},
	{kind: "config_unsupported", has: "Unsupported config option '", level: fatal, phase: PhaseLaunch, re: `Unsupported config option '(?P<Flag>\w+)'`},
	{kind: "flags_conflict", has: "enable-hierarchical-cache and disable-radix-cache are mutually exclusive", level: fatal, phase: PhaseLaunch},
	{kind: "hicache_smaller_refused", has: "The host memory should be larger than the device memory", level: fatal, phase: PhaseHostPool},
	{kind: "config_unsupported", has: "Config file must be YAML", level: fatal, phase: PhaseLaunch},
	{kind: "config_unsupported", has: "Config file not found", level: fatal, phase: PhaseLaunch},
	{kind: "config_unsupported", has: "No config file specified", level: fatal, phase: PhaseLaunch},
	{kind: "config_unsupported", has: "Multiple config files", level: fatal, phase: PhaseLaunch},
}
