#!/bin/bash
# PyTorch's ZeroRedundancyOptimizer recipe, predicted without PyTorch and without a GPU.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
recipe=(shardscope simulate --exact --model mlp-20x2000 --world-size 2 --precision fp32 --optimizer adam --micro-batch 20
  --like pytorch@1.8)

# What the recipe publishes: max_memory_allocated in MB (10^6, rounded down).
check() {
  local published=$1 predicted
  predicted=$(sed -n 's/^ *"max_allocated_bytes": \([0-9]*\).*/\1/p' | awk '{ printf "%s%d", sep, $1 / 1e6; sep = " " }')
  echo "  published (MB): $published"
  echo "  predicted (MB): $predicted"
  [ "$predicted" = "$published" ] || fail 'they differ'
}

title 'With ZeroRedundancyOptimizer: each rank keeps the optimizer state of half the parameters'
run "${recipe[@]}" --stage 1 --partition parameter
check '335 656 992 1361' < <("${recipe[@]}" --stage 1 --partition parameter --json)

title 'Without it'
run "${recipe[@]}" --stage 0
check '335 656 992 1697' < <("${recipe[@]}" --stage 0 --json)
