#!/bin/bash
# What rank 0 of eight cards takes to train Llama 2 7B under FSDP2, on a machine without a GPU.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../pytorch.sh"
needs torch numpy transformers
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/train.py

title 'On eight cards of 80 GB'
run shardscope dryrun --cluster a100-80gb-x8 --world-size 8 --top 6 -- "$python" "$script"

title 'On eight cards of 16 GB: what PyTorch would say, and where'
must_exit 1 shardscope dryrun --cluster t4-16gb-x4 --world-size 8 --top 3 -- "$python" "$script"
