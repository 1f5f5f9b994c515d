#!/bin/sh
# Opening and drawing traces of 1e5 to 1e7 spans, and of 100,000 chunks, as one table: viewer_curve.sh BUILD_DIRECTORY
set -eu
build=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo '| spans | memory events | chunks | load | first picture | build | draw | resident |'
echo '|---|---|---|---|---|---|---|---|'
row() {
  "$build/tests/make_trace" --spans "$1" --memory-events "$2" --chunks "$3" "$scratch/trace.sst" >"$scratch/log"
  "$build/bin/shardscope-view" view "$scratch/trace.sst" --screenshot "$scratch/trace.png" --json 2>"$scratch/log" |
    python3 -c '
import json, sys
r = json.load(sys.stdin)
print("| %s | %s | %s | %.3f s | %.3f s | %.1f ms | %.1f ms | %.0f MB |" % (*sys.argv[1:4], r["load_seconds"],
      r["first_picture_seconds"], 1e3 * r["build_seconds"], 1e3 * r["draw_seconds"], r["resident_bytes"] / 1e6))
' "$1" "$2" "$3"
}
row 100000 20000 96
row 1000000 200000 96
row 10000000 2000000 96
row 1000000 200000 100000
