#!/bin/bash
# GPT-2 medium with ZeRO, configured as the tutorials do it: run.sh [SCALE [STEPS [CAPACITY]]]. SCALE divides layers, heads,
# width, sequence, vocabulary and batch, 1 is the model itself; CAPACITY is the device memory that placement auto may fill.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
scale=${1:-8} steps=${2:-2} capacity=${3:-10Mi}
cd "$(dirname "${BASH_SOURCE[0]}")"
model="{\"model_type\": \"gpt2\", \"n_embd\": $((1024 / scale)), \"n_layer\": $((24 / scale)), \"n_head\": $((16 / scale)),
  \"n_positions\": $((1024 / scale)), \"vocab_size\": $((50257 / scale))}"
common=(--data random --micro-batch "$(((8 + scale - 1) / scale))" --recompute block --optimizer HybridAdam --lr 1e-3 --steps "$steps")
strategies=(
  '--placement cuda'                                     # zero_config.py as it stands: TensorShardStrategy
  '--placement cpu'
  '--placement cpu --unit bucket'                        # BucketTensorShardStrategy
  '--placement cuda --unit chunk'                        # ChunkManager and GeminiManager, or GeminiDDP
  '--placement cpu --unit chunk'
  "--placement auto --unit chunk --device-capacity $capacity"
)

first=
for strategy in "${strategies[@]}"; do
  show shardscope train --colossalai-config zero_config.py --ranks 2 $strategy --print-memory ...
  # On stderr: the chunk size that was found.
  answer=$(shardscope train --colossalai-config zero_config.py --ranks 2 $strategy --print-memory --model "$model" \
    "${common[@]}" 2>/dev/null) || fail "exit code $?"
  grep -E '^  (model made|optimizer made|forward|backward|optimizer [0-9])|^step [0-9]|^state' <<<"$answer"
  state=$(grep '^state' <<<"$answer")
  [ "$state" = "${first:=$state}" ] || fail 'the state depends on the strategy'
done
