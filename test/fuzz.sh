#!/usr/bin/env bash
# Runs every fuzz target of the module for a while each. usage: fuzz.sh DURATION
# Go's fuzzer sometimes ends a clean run with "context deadline exceeded" and no failing input (its own clock ran out
# while a worker was busy; golang.org issue 75804). Such an end is tried again; a failing input never is.
set -euo pipefail
duration=${1:?usage: fuzz.sh DURATION}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for pkg in $(go list ./...); do
  for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
    for try in 1 2 3; do
      echo "fuzz $pkg $target"
      if go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" -fuzzminimizetime 10x "$pkg" >"$log" 2>&1; then
        tail -n 1 "$log"
        break
      fi
      cat "$log"
      if [ "$try" = 3 ] || grep -q 'Failing input' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
        exit 1
      fi
    done
  done
done
