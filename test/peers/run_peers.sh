#!/bin/bash
# Load generators against mockllm, in one run, with one table of ratios (README.md explains its columns).
#
#   REPS=1 CONC=50 ./run_peers.sh                     quick check, about a minute
#   OURS='sgtune replay --url {url} --endpoint {api} --workload random-ids --random-input-len 16 --random-output-len {out}
#     --random-range-ratio 1 {load} --requests {n} --warmup 0 --out {json}' ./run_peers.sh
#
# Settings (environment):
#   WORK    scratch folder (default: a folder in $TMPDIR); set-ups are kept there, runs/ is overwritten
#   PEERS   which clients (default "bound parse sgrust"; also guidellm aiperf infperf evalscope grill, each in a virtual
#           environment of its own; guidellm brings torch, several GB). sgpy is added when SGLANG_PY names a python with sglang
#   REPS    rounds; the table has medians (default 3)
#   API     completions, generate (cumulative /generate; only ours, bound, parse, sgrust, sgpy), or both (default completions)
#   CONC    concurrencies of the paced runs (default "50 200 1000"); N = concurrency
#   OUT     output tokens per request (default 512); ITL, TTFT: 20ms, 50ms
#   MAXN    requests of the zero-latency run at concurrency 64 (default 1000; 0 skips it)
#   OURS    our replayer's command, filled in: {url} {n} {out} {json}, {api} completions|generate, {load} "--concurrency C" or
#           "--rate R" (without it: {c}, and the open-loop checks are skipped). {json} is the report of docs/report.md
#   CHECKS  1 = the exact checks of OURS after the first round (default 1)
#   GOPROCS GOMAXPROCS of ours, bound and parse, not of the mock (default: unset)
#   PY311   Python 3.11 (Debian 12's): SGLang's Rust client is built for it, the other peers were installed with 3.11 or 3.12
#   PY312   Python 3.12, for infperf only (left out where there is none)
#   PORT, LIMIT (seconds a run may take, 300), AUTONICE (see measure.py)
# Nothing but the package registry is reached, and only during set-up: the default set downloads one wheel and no dependencies.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
WORK=${WORK:-${TMPDIR:-/tmp}/sgtune-bench}
PEERS=${PEERS:-bound parse sgrust}
[ -n "${SGLANG_PY:-}" ] && PEERS="$PEERS sgpy"
[ -n "${OURS:-}" ] && PEERS="ours $PEERS"
CONC=${CONC:-50 200 1000}; OUT=${OUT:-512}; ITL=${ITL:-20ms}; TTFT=${TTFT:-50ms}; MAXN=${MAXN:-1000}
REPS=${REPS:-3}; API=${API:-completions}; CHECKS=${CHECKS:-1}; GOPROCS=${GOPROCS:-}
PORT=${PORT:-18080}; URL=http://127.0.0.1:$PORT
export MEAS_LIMIT=${LIMIT:-300}
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false HF_HUB_DISABLE_TELEMETRY=1 GUIDELLM__MAX_WORKER_PROCESSES=${GUIDELLM_WORKERS:-$(nproc)}
mkdir -p "$WORK/runs" "$WORK/venv" || exit 1
rm -rf "$WORK"/runs/[0-9]*

say() { echo "run_peers: $*" >&2; }
has() { case " $PEERS " in *" $1 "*) return 0;; esac; return 1; }
drop() { say "$1 left out: $2"; PEERS=$(echo " $PEERS " | sed "s/ $1 / /"); }
interp() { # minor candidate...: the first that runs and is that version
  local m=$1 p; shift
  for p in "$@"; do [ -n "$p" ] && "$p" -c "import sys; sys.exit(sys.version_info[:2] != (3, $m))" 2>/dev/null && { echo "$p"; return; }; done
}
PY311=$(interp 11 "${PY311:-}" python3.11 /usr/bin/python3.11 python3)
PY312=$(interp 12 "${PY312:-}" python3.12 python3)
PY=${PY311:-python3}
venv() { # name python requirement...
  local d=$WORK/venv/$1; [ -f "$d/ok" ] && return 0
  say "setting up $1"
  "$2" -m venv "$d" >"$d.log" 2>&1 && "$d/bin/pip" install -q --disable-pip-version-check "${@:3}" >>"$d.log" 2>&1 && touch "$d/ok" ||
    drop "$1" "set-up failed, see $d.log"
}

(cd "$HERE/mockllm" && go build -o "$WORK/mockllm" . && go build -o "$WORK/tcpbound" ./cmd/tcpbound) || exit 1
TOK=$WORK/tokenizer
"$PY" "$HERE/mktokenizer.py" "$TOK" || exit 1
if has sgrust && [ -z "$PY311" ]; then drop sgrust "no Python 3.11 (Debian 12: apt-get install python3 python3-pip)"; fi
if has sgrust && ! ls "$WORK"/sgrust/_bench*.so >/dev/null 2>&1; then
  say "setting up sgrust"
  mkdir -p "$WORK/sgrust"   # the Rust client is one extension module of the wheel and loads alone: no torch, no dependencies
  "$PY311" -m pip download -q --disable-pip-version-check --no-deps -d "$WORK/sgrust" sglang==0.5.23 >"$WORK/sgrust.log" 2>&1 &&
    "$PY311" - "$WORK/sgrust" <<'P' || drop sgrust "set-up failed, see $WORK/sgrust.log"
import glob, os, sys, zipfile
d = sys.argv[1]
w = glob.glob(d + "/sglang-*.whl")[0]
with zipfile.ZipFile(w) as z:
    for n in z.namelist():
        if "/_bench." in n and n.endswith(".so"):
            with open(os.path.join(d, os.path.basename(n)), "wb") as f:
                f.write(z.read(n))
os.remove(w)
P
fi
has aiperf && venv aiperf "$PY" aiperf==0.13.0
has evalscope && venv evalscope "$PY" 'evalscope[perf]==1.14.1'
has grill && venv grill "$PY" llm-grill==0.1.4
has guidellm && venv guidellm "$PY" guidellm==0.8.1
if has infperf; then
  if [ -n "$PY312" ]; then venv infperf "$PY312" inference-perf==0.7.0; else drop infperf "it needs Python 3.12 (PY312)"; fi
fi

cmd() { # peer load requests tokens label api -> array C; load: a concurrency, or rR for open loop at R requests/s
  local t=$1 c=$2 n=$3 o=$4 r=$RUNS/$5 api=$6 load path=/v1/completions be=sglang-oai; rm -rf "$r".*
  [ "$api" = generate ] && { path=/generate; be=sglang; }
  case $c in r*) load="--rate ${c#r}";; *) load="--concurrency $c";; esac
  local go=(env ${GOPROCS:+GOMAXPROCS=$GOPROCS})
  local sg=(--backend "$be" --base-url "$URL" --dataset-name random-ids --random-input-len 16 --random-output-len "$o"
    --random-range-ratio 1 --num-prompts "$n" --max-concurrency "$c" --model mock --tokenizer "$TOK" --disable-tqdm
    --warmup-requests 0 --output-file "$r.jsonl")
  case $t in
  ours) local s=${OURS//\{url\}/$URL}; s=${s//\{c\}/$c}; s=${s//\{n\}/$n}; s=${s//\{out\}/$o}; s=${s//\{json\}/$r.json}
    s=${s//\{api\}/$api}; s=${s//\{load\}/$load}; s=${s//$'\n'/ }; C=("${go[@]}" bash -c "exec $s");;
  bound) C=("${go[@]}" "$WORK/tcpbound" -path "$path" -addr "127.0.0.1:$PORT" -c "$c" -n "$n" -out "$o");;
  parse) C=("${go[@]}" "$WORK/tcpbound" -parse -path "$path" -addr "127.0.0.1:$PORT" -c "$c" -n "$n" -out "$o");;
  sgrust) C=(env PYTHONPATH="$WORK/sgrust" "$PY311" -c 'import sys, _bench; _bench.run_argv(["sglang-bench"] + sys.argv[1:])' "${sg[@]}");;
  sgpy) C=("$SGLANG_PY" -m sglang.benchmark.serving "${sg[@]}");;
  aiperf) C=("$WORK/venv/aiperf/bin/aiperf" profile -m mock --url "$URL" --endpoint-type completions --streaming --concurrency "$c"
    --request-count "$n" --synthetic-input-tokens-mean 16 --output-tokens-mean "$o" --output-tokens-stddev 0 --tokenizer "$TOK" --artifact-dir "$r.art" --ui none);;
  infperf) mkdir -p "$r.inf"; cat >"$r.yml" <<Y
api: {type: completion, streaming: true}
data:
  type: random
  input_distribution: {min: 16, max: 16, mean: 16, std_dev: 0, total_count: $n}
  output_distribution: {min: $o, max: $o, mean: $o, std_dev: 0, total_count: $n}
load:
  type: concurrent
  num_workers: $(nproc)
  worker_max_concurrency: $((c / $(nproc) + 1))
  stages: [{num_requests: $n, concurrency_level: $c}]
server: {type: sglang, model_name: mock, base_url: "$URL", ignore_eos: true}
tokenizer: {pretrained_model_name_or_path: $TOK}
storage: {local_storage: {path: $r.inf}}
report: {request_lifecycle: {summary: true, per_stage: true, per_request: false}}
Y
    C=("$WORK/venv/infperf/bin/inference-perf" -c "$r.yml");;
  evalscope) C=("$WORK/venv/evalscope/bin/evalscope" perf --model mock --api openai --url "$URL/v1/completions" --tokenizer-path "$TOK" --parallel "$c"
    --number "$n" --dataset random --min-prompt-length 16 --max-prompt-length 16 --max-tokens "$o" --min-tokens "$o" --stream --no-test-connection --outputs-dir "$r.art");;
  grill) cat >"$r.yml" <<Y
name: x
backends: [{name: b, url: "$URL", type: vllm}]
models: [{name: mock, max_tokens: $o}]
conversations: [{name: c, turns: [{role: user, content: "w1 w2 w3"}]}]
targets: [{backend: b, model: mock, conversation: c}]
load: {concurrent_users: $c, iterations: $((n / c))}
Y
    C=("$WORK/venv/grill/bin/llm-grill" run "$r.yml" -o "$r.jsonl" --quiet);;
  guidellm) C=("$WORK/venv/guidellm/bin/guidellm" run --disable-console-interactive --backend "kind=openai_http,target=$URL,model=mock,request_format=/v1/completions"
    --profile "kind=concurrent,streams=$c" --constraint "kind=max_requests,count=$n" --tokenizer "{\"kind\":\"huggingface_auto\",\"model\":\"$TOK\"}"
    --data "kind=synthetic_text,prompt_tokens=16,output_tokens=$o" --output "kind=json,path=$r.json");;
  esac
}

MP=
trap '[ -n "$MP" ] && kill "$MP" 2>/dev/null' EXIT
trap 'exit 130' INT TERM
one() { # peer load requests tokens label api mockflags...
  local label=$5 up=
  cmd "$1" "$2" "$3" "$4" "$label" "$6"
  setsid bash -c 'echo "${AUTONICE:-0}" >/proc/self/autogroup; exec "$@"' x "$WORK/mockllm" -addr "127.0.0.1:$PORT" "${@:7}" >"$RUNS/$label.mock" 2>&1 &
  MP=$!
  for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; kill -0 $MP 2>/dev/null || break; curl -fs "$URL/health" >/dev/null && { up=1; break; }; done
  [ -n "$up" ] || { say "the mock does not start (port $PORT taken? PORT= chooses another): $(tail -1 "$RUNS/$label.mock")"; exit 1; }
  MEAS_LOG=$RUNS/$label.log python3 "$HERE/measure.py" "$label" "$URL" -- "${C[@]}" | tee -a "$RUNS/results.jsonl" >&2
  kill $MP; wait $MP 2>/dev/null; MP=
}
check() { # name load requests tokens expected-json mockflags...
  one ours "$2" "$3" "$4" "ours-x_$1" completions "${@:6}"
  echo "$5" >"$RUNS/ours-x_$1.expect"
}

read -r busy _ </proc/loadavg
[ "${busy%%.*}" -ge 1 ] && say "this machine is busy (load $busy): zero-latency ratios mean little now"
for rep in $(seq "$REPS"); do
  RUNS=$WORK/runs/$rep; mkdir -p "$RUNS"; : >"$RUNS/results.jsonl"
  for api in $API; do
    g=; [ "$api" = generate ] && g=g
    for t in $PEERS; do
      if [ -n "$g" ]; then
        case $t in ours) case $OURS in *"{api}"*) ;; *) say "ours left out of generate: no {api} in OURS"; continue;; esac;;
        bound|parse|sgrust|sgpy) ;; *) continue;; esac
      fi
      one "$t" 1 1 8 "$t-${g}tiny" "$api" -flush 1           # start-up cost, taken off below
      [ "$MAXN" -gt 0 ] && one "$t" 64 "$((MAXN / 64 * 64))" "$OUT" "$t-${g}max" "$api" -flush 1
      for c in $CONC; do one "$t" "$c" "$c" "$OUT" "$t-${g}c$c" "$api" -itl "$ITL" -ttft "$TTFT"; done
    done
  done
  if [ "$rep" = 1 ] && has ours && [ "$CHECKS" = 1 ]; then
    # 200 requests of 64 tokens, 20 at a time; what a correct client must report is written beside each
    w=(-ttft 50ms -itl 5ms)
    check per-chunk 20 200 64 '{"sent": 200, "ok": 200, "failed": {}, "tokens": 12800, "peak": 20}' "${w[@]}" -per-chunk 3
    check fail-every 20 200 64 '{"sent": 200, "ok": 180, "failed": {"http_status": 20}, "tokens": 11520, "peak": 20}' "${w[@]}" -fail-every 10
    check cut-every 20 200 64 '{"sent": 200, "ok": 180, "failed": {"cut_stream": 20}, "tokens": 11520, "peak": 20}' "${w[@]}" -cut-every 10
    check stall 20 20 200 '{"sent": 20, "ok": 20, "failed": {}, "tokens": 4000, "peak": 20, "itl_max": 25}' -ttft 50ms -itl 10ms -stall 2s -stall-at 1s
    case $OURS in *"{load}"*)
      check open r500 10000 8 '{"sent": 10000, "ok": 10000, "failed": {}, "tokens": 80000, "send_lag_p99": 2, "rate": 500}' -ttft 20ms -itl 0
      check open-stall r50 300 8 '{"sent": 300, "ok": 300, "failed": {}, "tokens": 2400, "ttft_p99": 25}' -ttft 20ms -itl 5ms -stall 2s -stall-at 2s;;
    *) say "open-loop checks left out: no {load} in OURS";; esac
  fi
done
python3 "$HERE/table.py" "$WORK/runs" | tee "$WORK/table.txt"
