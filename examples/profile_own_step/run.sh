#!/bin/bash
# Where the time of a GPT-2 step goes on this machine, and which ops are furthest from their prediction.
# Usage: run.sh [MODEL], gpt2-nano without it. $DEVICE: cpu (without it), cuda, emulated-cuda.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
model=${1:-gpt2-nano}

title 'Two ranks, ZeRO-3, six steps: where did the time go?'
run shardscope train --model "$model" --data random --ranks 2 --stage 3 --steps 6 --print-every 6 \
  --device "${DEVICE:-cpu}" --profile --profile-steps 3:6 --trace "$out/own.sst"

title 'The same file answers later'
run shardscope inspect "$out/own.sst" --top 5
