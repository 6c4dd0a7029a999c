#!/usr/bin/env bash
# Install optuna-dashboard, to which the page is compared, and nothing else into a virtual environment.
# usage: setup.sh DIR        then: SGTUNE_PEER=DIR go test ./test/webspeed
# Needs: python3 with venv. Does nothing where DIR holds that version already. The studies it is filled with are kept in DIR/nights.
set -euo pipefail
dir=${1:?usage: setup.sh DIR}
version=0.21.0
if [ "$(cat "$dir/version" 2>/dev/null)" = "$version" ]; then exit 0; fi
python3 -m venv "$dir"
"$dir/bin/pip" install --quiet --disable-pip-version-check "optuna-dashboard==$version"
echo "$version" > "$dir/version"
