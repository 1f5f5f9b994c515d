#!/bin/bash
# Draws the pictures of the documents anew, beside this script: `make pictures`, or make.sh DIRECTORY for the traces.
# The traces are those of examples/01_first_light; measured times, and so the pictures, differ from run to run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../examples/common.sh"

mkdir -p "$1"
traces=$(cd "$1" && pwd)
"$here/../../examples/01_first_light/run.sh" "$traces" >"$traces/log" || { tail -n 20 "$traces/log" && exit 1; }
shardscope search --model gpt2-medium --world-size 8 --cluster a100-40gb-x8 --json >"$traces/search_medium.json"
cd "$traces"
picture() {
  shardscope view "${@:2}" --screenshot "$here/$1"
  echo "$here/$1"
}
overview=(--step 2 --size 1360x820)
picture overview_dark.png measured.sst "${overview[@]}" --tab live
picture overview_light.png predicted.sst "${overview[@]}" --tab statistics --theme light
picture compare.png predicted.sst measured.sst --step 1 --size 1360x820 --align stretch
picture memory.png measured.sst --step 2 --pane memory --size 1200x480
picture chunks.png measured.sst --step 2 --pane chunks --size 1200x360 --theme light
picture search.png --search search_medium.json --size 760x820 --theme light
