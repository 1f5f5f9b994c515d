#!/bin/bash
# One global batch, six ways to shard it: do all end with the same parameters and optimizer state, bit for bit?
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
common=(--model gpt2-nano --data text:/usr/share/common-licenses/GPL-3 --sequence 64 --global-batch 4 --steps 5)
strategies=(
  '--ranks 1'
  '--ranks 2 --stage 1 --unit tensor'
  '--ranks 2 --stage 2 --unit module --recompute block'
  '--ranks 2 --stage 3 --unit bucket --prefetch 3 --threads 2'
  '--ranks 4 --stage 3 --unit chunk --chunk-size 128Ki'
  '--ranks 4 --stage 3 --unit chunk --chunk-size variable:128Ki'
)

first=
for strategy in "${strategies[@]}"; do
  show shardscope train "${common[@]}" $strategy --json '| ...'
  answer=$(shardscope train "${common[@]}" $strategy --json 2>/dev/null) || fail "exit code $?"
  state=$(json_value state_sha256 <<<"$answer")
  echo "  peak $(json_value measured_peak_bytes <<<"$answer") bytes on rank 0, state $state"
  [ "$state" = "${first:=$state}" ] || fail 'the state differs from that of the first strategy'
done
echo 'all the same'
