#!/bin/bash
# The last of `make demo`: one picture of its two traces, the first steady step of both on one axis.
# Usage: compare_picture.sh [DIRECTORY] with predicted.sst and measured.sst; $SHARDSCOPE_DEMO or ./shardscope-demo
# without it. Where the viewer was not built it says so and does nothing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

out=${1:-${SHARDSCOPE_DEMO:-shardscope-demo}}
out=$(cd "$out" && pwd)
if [ ! -x "$(dirname "$(command -v shardscope)")/shardscope-view" ]; then
  echo "no picture of the two traces: the viewer (shardscope-view) was not built; 'make deps' installs what it needs"
  exit 0
fi
shardscope view "$out/predicted.sst" "$out/measured.sst" --step 1 --align stretch --screenshot "$out/compare.png"
echo "$out/compare.png               both, one step on one axis  (shardscope view opens them in a window)"
