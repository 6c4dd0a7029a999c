#!/usr/bin/env bash
# Install what the browser tests need: Chromium and a font by apt, where there is no chromium yet, and axe-core by npm into DIR.
# usage: setup.sh DIR        -> DIR/node_modules/axe-core. Does nothing where all is there.
# axe-core (MPL-2.0) is a tool of the tests: it is neither vendored nor embedded.
set -euo pipefail
dir=${1:?usage: setup.sh DIR}
version=${AXE_VERSION:-4.14.1}
if ! command -v chromium >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
fi
if grep -q "\"version\": *\"$version\"" "$dir/node_modules/axe-core/package.json" 2>/dev/null; then exit 0; fi
mkdir -p "$dir"
npm install --prefix "$dir" --no-save --no-audit --no-fund --silent "axe-core@$version"
