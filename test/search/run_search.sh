#!/usr/bin/env bash
# sgtune's search against other optimizers on the same problems and seeds, with the tables of README.md (its columns are there).
#
#   SEEDS=2 HELDOUT_SEEDS=1 PEERS="sgphys random" ./run_search.sh     quick look, about a minute
#   ./run_search.sh                                                   the whole measurement, about 15 minutes on a free core
#
# Settings (environment):
#   WORK           scratch folder (default: a folder in $TMPDIR); runs/ in it is begun anew
#   KEEP           1 = go on with the runs that are there, after an interruption (not after a change of the product)
#   CACHE          where the peers' virtual environment stays between runs (default ~/.cache/sgtune-search)
#   PYTHON         the python that makes it and runs the rest (default python3; 3.9 or newer)
#   OURS           the product's command (default: sgtune is built and run as "sgtune suggest")
#   PEERS          which others (default "sgphys tpe cmaes goptuna_tpe random"; also tpe_default tpe_blind random_blind human human_seed
#                  goptuna_cmaes goptuna_random); without sgphys there is no --against line
#   SEEDS          seeds for each of the six public scenarios (default 20); SEED0 the first (default 0)
#   HELDOUT_SEEDS  seeds for each of the six held-out ones (default 10; 0 leaves them out)
#   DISGUISE       seed of disguise.py for the product's second run (default 3; empty leaves it out)
#   BY_SCN         1 = tables for each scenario too
#   JOBS           optimizers at a time (default 1: the CPU figures are then those of a core with nothing else to do)
# Only the package registries are reached, and only for the peers: numpy (sgphys), optuna and cmaes (tpe, cmaes), goptuna (goptuna_*).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
WORK=${WORK:-${TMPDIR:-/tmp}/sgtune-search}
CACHE=${CACHE:-$HOME/.cache/sgtune-search}
PYTHON=${PYTHON:-python3}
PEERS=${PEERS-sgphys tpe cmaes goptuna_tpe random}
SEEDS=${SEEDS:-20} SEED0=${SEED0:-0} HELDOUT_SEEDS=${HELDOUT_SEEDS:-10} DISGUISE=${DISGUISE-3} JOBS=${JOBS:-1}
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
runs=$WORK/runs
[ "${KEEP:-0}" = 1 ] || rm -rf "$runs"
mkdir -p "$runs"

say() { echo "run_search: $*" >&2; }
stop() { # the optimizers that still run, then us
  local p
  for p in $(jobs -rp); do kill "$p" 2>/dev/null || true; done
  exit 130
}
trap stop INT TERM

# installs what the peers of PEERS need; the folder is named by the versions, so that a change makes a new one
packages=()
case " $PEERS " in *" sgphys "*) packages+=(numpy==2.4.6);; esac
case " $PEERS " in *" tpe"* | *" cmaes "*) packages+=(optuna==5.0.0 cmaes==0.13.1);; esac
python=$PYTHON
if [ ${#packages[@]} -gt 0 ]; then
  venv=$CACHE/venv-$(IFS=_; echo "${packages[*]}" | tr -d =)
  if [ ! -f "$venv/ok" ]; then
    say "installing ${packages[*]} into $venv"
    "$PYTHON" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
    touch "$venv/ok"
  fi
  python=$venv/bin/python
fi
case " $PEERS " in *" goptuna_"*) (cd "$here/goptuna_peer" && go build -o "$WORK/gopt" .);; esac
if [ -z "${OURS:-}" ]; then
  (cd "$here/../.." && go build -o "$WORK/sgtune" ./cmd/sgtune)
  OURS="$WORK/sgtune suggest"
fi

command_of() { # peer -> its command line
  case $1 in
    sgtune) echo "$OURS";;
    sgtune_disguised) echo "$PYTHON '$here/disguise.py' --seed $DISGUISE --cmd '$OURS'";;
    sgphys) echo "$python '$here/ref_sgphys.py'";;
    goptuna_*) echo "$WORK/gopt ${1#goptuna_}";;
    *) echo "$python '$here/peers.py' $1";;
  esac
}

measure() { # name set scenarios seeds first-seed: one optimizer over one set, into $runs/set/name.jsonl
  mkdir -p "$runs/$2"
  local start=$SECONDS pid
  "$PYTHON" "$here/runner.py" --cmd "$(command_of "$1")" --name "$1" --scn "$3" --seeds "$4" --seed0 "$5" --out "$runs/$2/$1.jsonl" &
  pid=$!
  trap 'kill "$pid" 2>/dev/null; exit 143' TERM
  wait "$pid" || { say "$1 failed on $2"; return 1; }
  say "$2: $1 took $((SECONDS - start)) s"
}

pids=()
start() { # runs measure in the background, never more than JOBS at a time
  while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n || true; done
  measure "$@" &
  pids+=($!)
}
for name in sgtune $PEERS; do
  start "$name" public "$here/scenarios" "$SEEDS" "$SEED0"
done
if [ -n "$DISGUISE" ]; then
  start sgtune_disguised disguised "$here/scenarios" "$SEEDS" "$SEED0"
fi
if [ "$HELDOUT_SEEDS" -gt 0 ]; then
  for name in sgtune $PEERS; do
    start "$name" heldout "$here/heldout" "$HELDOUT_SEEDS" "$SEED0"
  done
fi
failed=0
for p in "${pids[@]}"; do wait "$p" || failed=1; done
[ "$failed" = 0 ] || { say "an optimizer failed (see above): no table"; exit 1; }

tables() { # set reference extra-files...
  local args=("$runs/$1"/*.jsonl --md)
  [ -f "$2" ] && args+=(--against "$2")
  [ "${BY_SCN:-0}" = 1 ] && args+=(--by-scn)
  "$PYTHON" "$here/score.py" "${args[@]}" "${@:3}"
}
{
  echo "## Six public scenarios, seeds $SEED0 to $((SEED0 + SEEDS - 1)), 30 trials"; echo
  tables public "$runs/public/sgphys.jsonl"
  if [ -n "$DISGUISE" ]; then
    echo "## Behind disguise.py --seed $DISGUISE, beside the same seeds undisguised"; echo
    tables disguised "$runs/public/sgtune.jsonl" "$runs/public/sgtune.jsonl"
  fi
  if [ "$HELDOUT_SEEDS" -gt 0 ]; then
    echo "## Six held-out scenarios, seeds $SEED0 to $((SEED0 + HELDOUT_SEEDS - 1))"; echo
    tables heldout "$runs/heldout/sgphys.jsonl"
  fi
} | tee "$WORK/table.md"
