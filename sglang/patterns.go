package sglang

import "slices"

// patterns is the table of log lines, by concept, each in a file of its own. Within one first letter,
// and among the rows with has, the first row that fits wins, so special rows stand before general ones:
// the order of this list matters.
//
// Sources: the reference's patterns, read from the wheels 0.4.6 to 0.5.23 and from real 0.5.23 logs;
// torch's, NCCL's, the kernel's and Slurm's own texts.
var patterns = slices.Concat(
	startPatterns, jitPatterns, httpPatterns, servingPatterns, deathPatterns,
	refusedPatterns, machinePatterns, memoryPatterns, peerPatterns, gpuPatterns, exceptionPatterns,
)
