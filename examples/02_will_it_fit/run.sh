#!/bin/bash
# Does GPT-2 XL train on eight GPUs of 24 GB, and if not, what is the least that must change?
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
question=(shardscope simulate --like shardscope --model gpt2-xl --world-size 8 --cluster a100-40gb-x8 --device-capacity 24Gi --micro-batch 4)

title 'Sharding the optimizer state alone (ZeRO-1) is not enough'
must_exit 3 "${question[@]}" --stage 1

title 'A script reads the same as JSON'
show "${question[@]}" --stage 1 --json '| ...'
answer=$("${question[@]}" --stage 1 --json 2>/dev/null) && fail 'this does not fit' || [ $? -eq 3 ]
change=$(json_value options <<<"$answer")
echo "  fits: $(json_value fits <<<"$answer"), try: $change"

title 'So change that'
run "${question[@]}" $change
