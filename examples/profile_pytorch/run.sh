#!/bin/bash
# What a PyTorch script does on the GPU, recorded from outside, with its memory snapshot on the same axis.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../pytorch.sh"
needs torch
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/train.py
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

title 'Kernels, copies, memory and idle time, without a line in the script'
run shardscope profile -o "$out/run.sst" --top 8 -- "$python" "$script" "$out/snapshot.pickle"

if [ -e "$out/run.sst" ] && [ -e "$out/snapshot.pickle" ]; then
  title 'With the memory snapshot of the same run, on one axis'
  run shardscope inspect "$out/run.sst" "$out/snapshot.pickle" --top 5
fi
