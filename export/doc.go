// Package export writes one configuration as a launch profile: a file that starts the server just
// as the trial was started, with where it came from as a comment.
//
// A profile carries the study's own command, then --model-path, then the flags, the same words in
// the same order as sglang.Server.Argv. Instrument flags and ports are no part of a configuration
// and are not exported. Secrets are named, never shown: ${HF_TOKEN}. Values are quoted for the
// language of the file, so a model path with spaces and quotes survives.
//
// What it is not: it does not choose the trial (the export command does), and it computes no figure;
// Figures are texts that were measured elsewhere.
//
// Reading order: profile.go (what a profile is, its comment, its secrets), shell.go (sh),
// yaml.go (SGLang's own --config file) and yamlkey.go (the keys its parser refuses).
package export
