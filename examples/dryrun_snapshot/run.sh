#!/bin/bash
# Finds what held memory at the peak of a training script, on a machine without a GPU, mends it, and shows the difference.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../pytorch.sh"
needs torch numpy
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/train.py
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT

title 'What it takes, and who holds it at the peak'
run shardscope dryrun --cluster l4-24gb-x8 --top 6 --trace "$traces/before.sst" -- "$python" "$script"

title 'The same, later, from the trace that it wrote (--trace x.pickle writes PyTorch'\''s own form, for pytorch.org/memory_viz)'
run shardscope inspect "$traces/before.sst" --at peak --by stack --top 2

title 'Mended: the chosen word is kept, not the probabilities of all'
run shardscope dryrun --cluster l4-24gb-x8 --top 6 --trace "$traces/after.sst" -- "$python" "$script" --fixed

title 'The difference'
run shardscope compare "$traces/before.sst" "$traces/after.sst"
