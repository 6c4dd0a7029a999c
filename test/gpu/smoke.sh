#!/usr/bin/env bash
# What only a real GPU can show, in ten minutes at most: NVML's facts against nvidia-smi's, a start with a hierarchical
# cache, memory that is given back after SIGKILL, a provoked prefill OOM that sgtune diagnose names, and a study of
# three trials. One NVIDIA GPU, SGLang and a small model are enough. It prints one table; the exit code is 1 when a
# row failed, 2 when it could not begin.
#
#   test/gpu/smoke.sh [MODEL]        a folder or a hub name, by default Qwen/Qwen2.5-0.5B-Instruct; download it before
#
# SGTUNE         the program to test                 (default: bin/sgtune, built when it is not there)
# SMOKE_PYTHON   a python with sglang and torch      (default: python3)
# SMOKE_SERVER   the server's command                (default: SMOKE_PYTHON -m sglang.launch_server)
# SMOKE_OOM      more words for the server that shall run out of memory
# SMOKE_BALLAST  what takes the rest of the GPU's memory, prints "held" and stays  (default: a few lines of torch)
# SMOKE_GPU      index of the GPU                    (default: 0)
# SMOKE_FRACTION --mem-fraction-static          (default: 0.6; the model's weights must fit into half of the GPU)
# SMOKE_PROMPT   tokens of the long prompt           (default: 8000; the model's context must hold it)
# SMOKE_WINDOW, SMOKE_MAX   how long the study's windows and levels are  (default: 3s, 10s)
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

limit=600 slack_mib=512
model=${1:-Qwen/Qwen2.5-0.5B-Instruct} python=${SMOKE_PYTHON:-python3} gpu=${SMOKE_GPU:-0} prompt=${SMOKE_PROMPT:-8000} fraction=${SMOKE_FRACTION:-0.6}
server=${SMOKE_SERVER:-$python -m sglang.launch_server}
export CUDA_VISIBLE_DEVICES=$gpu
work=$(mktemp -d) main='' ballast='' watchdog='' rows=() failures=0

# left ends what this script started, also when it is stopped half-way.
left() {
  [ -z "$main" ] || kill -s KILL -- "-$main" 2>/dev/null
  [ -z "$ballast" ] || kill -s KILL "$ballast" 2>/dev/null
  [ -z "$watchdog" ] || kill "$watchdog" "$(cat "$work/sleeper")" 2>/dev/null
  rm -rf "$work"
}
trap left EXIT
trap 'exit 130' INT
trap 'echo "smoke.sh: not done within $limit s"; table; exit 1' TERM

table() {
  printf '\nGPU %s, model %s, %d s in all\n' "$gpu" "$model" "$SECONDS"
  printf '%s\n' "${rows[@]}"
}

remaining() { echo $((limit - SECONDS > 1 ? limit - SECONDS : 1)); }

# row NAME: runs the function of that name; its last line of output is what was seen.
row() {
  local name=$1 begin=$SECONDS text
  if "$2" >"$work/$2.out" 2>&1; then text=ok; else text=FAILED failures=$((failures + 1)); fi
  rows+=("$(printf '%-34s %-7s %4d s  %s' "$name" "$text" $((SECONDS - begin)) "$(tail -n 1 "$work/$2.out")")")
  printf '%s\n' "${rows[-1]}" >&2
}

# used_mib is the memory in use on this GPU as sgtune reads it.
used_mib() {
  timeout 20 "$sgtune" nvml-probe | "$python" -c '
import json, sys
r = json.load(sys.stdin)
used = [g["Used"] >> 20 for g in r.get("gpus") or [] if g["Index"] == int(sys.argv[1])]
if not used: sys.exit(r.get("error") or "no GPU of this index")
print(used[0])' "$gpu"
}

facts() {
  timeout 20 nvidia-smi -i "$gpu" --query-gpu=memory.total,uuid --format=csv,noheader,nounits >"$work/smi" || return 1
  timeout 20 "$sgtune" nvml-probe | "$python" -c '
import json, sys
gpu = [g for g in json.load(sys.stdin)["gpus"] if g["Index"] == int(sys.argv[1])][0]
names = "PCI Driver PowerWatts PowerLimitWatts EnergyJoules SMClockMHz MemoryClockMHz TemperatureC Throttle UncorrectedECC RemapPending RemapFailed MIG".split()
for n in names: print(n, gpu.get(n, "unknown"))
total, uuid = open(sys.argv[2]).read().strip().split(", ")
if gpu["Total"] >> 20 != int(total) or gpu["UUID"] != uuid:
    sys.exit("NVML says %d MiB, %s and nvidia-smi %s MiB, %s" % (gpu["Total"] >> 20, gpu["UUID"], total, uuid))
unknown = [n for n in names if gpu.get(n) is None]
print("%s, driver %s, %s W, %s C; unknown: %s" % (gpu["Name"], gpu.get("Driver"), gpu.get("PowerWatts"), gpu.get("TemperatureC"), " ".join(unknown) or "nothing"))' "$gpu" "$work/smi"
}

# launch LOG WORDS...: a server with the marker of a trial, in a session of its own. Sets main; one that an earlier row
# left is ended first.
launch() {
  local log=$1
  shift
  [ -z "$main" ] || kill -s KILL -- "-$main" 2>/dev/null
  port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  # shellcheck disable=SC2086 # the command is words
  SGTUNE_TRIAL=smoke-$$ SPT_NOENV=1 setsid $server --model-path "$model" --host 127.0.0.1 --port "$port" "$@" >"$log" 2>&1 </dev/null &
  main=$!
}

# ready LOG SECONDS: until a real token came back.
ready() {
  local end=$((SECONDS + $2))
  while [ "$SECONDS" -lt "$end" ] && kill -0 "$main" 2>/dev/null; do
    ask 4 4 25 && return 0
    sleep 1
  done
  echo "no token within $2 s; the log ends: $(tail -n 1 "$1")"
  return 1
}

# ask TOKENS NEW SECONDS: one request of so many prompt tokens; fails unless it is answered with 200.
ask() {
  "$python" -c '
import json, sys, urllib.request
n, new, seconds, port = map(int, sys.argv[1:])
body = {"input_ids": [100 + i * 7 % 1000 for i in range(n)], "return_logprob": n > 100, "logprob_start_len": 0,
        "sampling_params": {"max_new_tokens": new, "temperature": 0}}
call = urllib.request.Request("http://127.0.0.1:%d/generate" % port, json.dumps(body).encode(), {"Content-Type": "application/json"})
try:
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(call, timeout=seconds).read()
except OSError as e:
    sys.exit(str(e))' "$@" "$port"
}

hicache() {
  launch "$work/hicache.log" --mem-fraction-static "$fraction" --max-total-tokens 8192 --enable-hierarchical-cache --hicache-size 4
  ready "$work/hicache.log" $(($(remaining) < 180 ? $(remaining) : 180)) || return 1
  local pool
  pool=$(grep -i -m 1 'host memory' "$work/hicache.log") || { echo "ready, but the log names no host pool"; return 1; }
  echo "$(used_mib) MiB in use; $(printf '%s' "$pool" | cut -c1-100)"
}

# given_back FROM: until the GPU is back at its baseline for two reads in a row.
given_back() {
  local begin=$SECONDS clean=0 now=''
  while [ $((SECONDS - begin)) -lt 60 ]; do
    now=$(used_mib) || now=''
    if [ -n "$now" ] && [ "$now" -le $((baseline + slack_mib)) ]; then clean=$((clean + 1)); else clean=0; fi
    if [ $clean -ge 2 ]; then
      echo "$1; $now MiB in use ($baseline before), given back within $((SECONDS - begin)) s"
      return 0
    fi
    sleep 1
  done
  echo "$1; still ${now:-unknown} MiB in use after 60 s ($baseline before)"
  return 1
}

released() {
  local was ended
  [ -n "$main" ] || { echo "no server to kill"; return 1; }
  was=$(used_mib) || return 1
  [ "$was" -gt $((baseline + slack_mib)) ] || { echo "the server holds no memory: $was MiB in use"; return 1; }
  kill -s KILL "$main" # the main process alone: its ranks are left behind
  wait "$main" 2>/dev/null
  ended=$(timeout 120 "$sgtune" reclaim --json | "$python" -c 'import json, sys; print(len(json.load(sys.stdin)["ended"] or []))') || return 1
  main=''
  given_back "killed; reclaim ended $ended processes that it left"
}

ballast_code='
import time, torch
held, step = [], 1 << 30
while step >= 1 << 24:
    free, _ = torch.cuda.mem_get_info()
    if free - step < 96 << 20:
        step //= 2
        continue
    try: held.append(torch.empty(step, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError: step //= 2
print("held", flush=True)
time.sleep(120)'

prefill_oom() {
  # shellcheck disable=SC2086 # more words
  launch "$work/oom.log" --mem-fraction-static "$fraction" --chunked-prefill-size 16384 ${SMOKE_OOM:-}
  ready "$work/oom.log" $(($(remaining) < 150 ? $(remaining) : 150)) || return 1
  if [ -n "${SMOKE_BALLAST:-}" ]; then
    $SMOKE_BALLAST >"$work/ballast" 2>&1 &
  else
    "$python" -c "$ballast_code" >"$work/ballast" 2>&1 &
  fi
  ballast=$!
  for _ in $(seq 60); do grep -q held "$work/ballast" && break; sleep 0.5; done
  grep -q held "$work/ballast" || { echo "the rest of the memory could not be taken: $(tail -n 1 "$work/ballast")"; return 1; }
  for _ in 1 2 3 4 5 6; do # the first ones may just fit
    ask "$prompt" 4 30
    grep -qi 'out of memory' "$work/oom.log" && break
    sleep 1
  done
  kill -s KILL "$ballast" 2>/dev/null
  wait "$ballast" 2>/dev/null
  ballast=''
  sleep 2 # it dies in more lines than one
  kill -s KILL -- "-$main" 2>/dev/null
  wait "$main" 2>/dev/null
  main=''
  timeout 30 "$sgtune" diagnose "$work/oom.log" --json >"$work/verdict.json"
  "$python" -c '
import json, sys
v = json.load(open(sys.argv[1]))
print(v["outcome"], "/", v["phase"], "/", v["cause"])
sys.exit(v["outcome"] != "gpu_oom")' "$work/verdict.json"
}

after_oom() { given_back "killed after the OOM"; }

study() {
  local words='' word
  for word in $server; do words="$words, \"$word\""; done
  for i in $(seq 300); do printf '{"prompt": "%s: tell me about number %d", "output_tokens": 32}\n' "$i" "$i"; done >"$work/rows.jsonl"
  cat >"$work/smoke.yaml" <<YAML
study: smoke
server: {command: [${words#, }], model: "$model", baseline: {mem-fraction-static: $fraction}, ready_timeout: 150s}
space: {mem-fraction-static: [$(awk "BEGIN { print $fraction - 0.05, \",\", $fraction, \",\", $fraction + 0.05 }")], chunked-prefill-size: [2048, 4096]}
workload: {file: rows.jsonl, load: {concurrency: [8]}}
measure: {window: ${SMOKE_WINDOW:-3s}, max: ${SMOKE_MAX:-10s}, canary: off, fill: off}
budget: {trials: 3}
confirm: {launches: 1}
finish: {launch: none}
YAML
  timeout -s INT -k 60 "$(($(remaining) > 80 ? $(remaining) - 60 : 20))" "$sgtune" tune "$work/smoke.yaml" --db "$work/smoke.db" --web off >"$work/tune.out" 2>&1
  local code=$?
  tail -n 5 "$work/tune.out"
  [ $code -le 1 ] || { echo "tune: exit $code: $(tail -n 1 "$work/tune.out")"; return 1; } # 1: one pair confirms nothing
  timeout 30 "$sgtune" show smoke --db "$work/smoke.db" --json | "$python" -c '
import json, sys
t = [x for x in json.load(sys.stdin)["trials"] if x["role"] != "confirm"]
good = [x for x in t if x.get("value")]
print(len(t), "trials,", len(good), "with a value:", ", ".join("%s %s" % (x["outcome"], round(x["value"]) if x.get("value") else x["cause"]) for x in t))
sys.exit(len(t) < 3 or len(good) < 2)'
}

after_study() { given_back "after the study"; }

sgtune=${SGTUNE:-bin/sgtune}
if [ ! -x "$sgtune" ]; then CGO_ENABLED=1 go build -o "$sgtune" ./cmd/sgtune || exit 2; fi
for tool in setsid timeout nvidia-smi "$python"; do
  command -v "$tool" >/dev/null || { echo "smoke.sh: $tool is not installed" >&2; exit 2; }
done
SECONDS=0
{ sleep "$limit" & echo $! >"$work/sleeper"; wait $! && kill "$$"; } >/dev/null 2>&1 &
watchdog=$!
baseline=$(used_mib) || { echo "smoke.sh: sgtune cannot read GPU $gpu: $(timeout 20 "$sgtune" nvml-probe)" >&2; exit 2; }

row "NVML facts" facts
row "start with a hierarchical cache" hicache
row "SIGKILL, reclaim, memory back" released
row "provoked prefill OOM, diagnosed" prefill_oom
row "memory back after the OOM" after_oom
row "study of three trials" study
row "memory back after the study" after_study

table
[ $failures -eq 0 ]
