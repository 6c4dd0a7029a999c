#!/usr/bin/env bash
# Times `sgtune diagnose` on a log of decode lines against grep on the same file, on one core.
# usage: diagnose-speed.sh [MB]   (default 1024; 64 is quick)
# Fails when diagnose takes more than 5 times grep's time or more than 64 MiB of memory. The log lies in TMPDIR.
# SGTUNE names a program to test instead of one built here.
set -euo pipefail
megabytes=${1:-1024}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
log=$dir/server.log
sgtune=${SGTUNE:-$dir/sgtune}
[ -n "${SGTUNE:-}" ] || go build -o "$sgtune" ./cmd/sgtune

# A start, then decode lines in the words of 0.5.23, of which no two neighbours are alike.
awk -v bytes=4194304 'BEGIN {
  printf "[2026-11-29 02:00:00] server_args={\"model_path\": \"m\", \"tp_size\": 8}\n"
  printf "[2026-11-29 02:01:00] The server is fired up and ready to roll!\n"
  for (i = 0; n < bytes; i++) {
    line = sprintf("[2026-11-29 %02d:%02d:%02d TP0] Decode batch, #running-req: %d, #token: %d, token usage: %.2f, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: %d",
      i / 3600 % 24, i / 60 % 60, i % 60, 20 + i % 40, 100000 + i * 37 % 60000, i % 97 / 100, 1000 + i * 7.13 % 900, i % 200)
    print line
    n += length(line) + 1
  }
}' >"$dir/piece"
for ((done = 0; done < megabytes; done += 4)); do cat "$dir/piece"; done >"$log"

one_core=()
if command -v taskset >/dev/null; then one_core=(taskset -c "$(taskset -cp $$ | sed 's/.*[ ,-]//')"); fi

# timed FILE COMMAND: the quickest of three runs in seconds; FILE gets the largest memory in KiB.
timed() {
  local memory=$1 best='' s
  shift
  for _ in 1 2 3; do
    "${one_core[@]}" "$dir/timed" "$memory" "$@" >"$dir/seconds" || return 1
    s=$(cat "$dir/seconds")
    if [ -z "$best" ] || awk "BEGIN { exit !($s < $best) }"; then best=$s; fi
  done
  echo "$best"
}

# Prints the wall time of a command and writes its largest resident memory; /usr/bin/time is not everywhere.
cat >"$dir/timed.go" <<'GO'
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

func main() {
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stderr = os.Stderr
	begin := time.Now()
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 || cmd.ProcessState.ExitCode() < 0 {
		fmt.Fprintln(os.Stderr, cmd.Args, err)
		os.Exit(1)
	}
	fmt.Printf("%.3f\n", time.Since(begin).Seconds())
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if err := os.WriteFile(os.Args[1], []byte(strconv.FormatInt(usage.Maxrss, 10)), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
GO
go build -o "$dir/timed" "$dir/timed.go"

cat "$log" >/dev/null # both read from memory
export LC_ALL=C GOMAXPROCS=1
grep_s=$(timed "$dir/grep.kib" grep -cE 'OutOfMemory|Traceback|Killed' "$log")
ours_s=$(timed "$dir/ours.kib" "$sgtune" diagnose "$log" --json)
memory=$(cat "$dir/ours.kib")
ratio=$(awk "BEGIN { printf \"%.2f\", $ours_s / $grep_s }")
echo "$megabytes MB of decode lines: grep $grep_s s, sgtune diagnose $ours_s s: $ratio times; $((memory / 1024)) MiB resident"
if awk "BEGIN { exit !($ratio > 5) }"; then
  echo "diagnose is slower than 5 times grep" >&2
  exit 1
fi
if [ "$memory" -gt 65536 ]; then
  echo "diagnose takes more than 64 MiB" >&2
  exit 1
fi
