#!/bin/bash
# The main job end to end: search a chunk size, measure this machine, train sharded on two ranks, compare with the prediction.
# Usage: run.sh [DIRECTORY], where the traces go; $SHARDSCOPE_DEMO or ./shardscope-demo without it.
# $SHARDSCOPE_DEMO_STEPS: training steps, 20 without it. $SHARDSCOPE_DEMO_CLUSTER: this machine as
# `calibrate` described it before; without it that is measured for $SHARDSCOPE_DEMO_SECONDS, ten without it, or machine.json
# of a run before is used.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../common.sh"

out=${1:-${SHARDSCOPE_DEMO:-shardscope-demo}}
text=/usr/share/common-licenses/GPL-3
steps=${SHARDSCOPE_DEMO_STEPS:-20}
machine=${SHARDSCOPE_DEMO_CLUSTER:-}
files=(predicted.sst measured.sst predicted.perfetto-trace measured.perfetto-trace loss.jsonl search.json)

made=
[ -d "$out" ] || made=yes
mkdir -p "$out"
out=$(cd "$out" && pwd)
clean_up() {
  local status=$?
  [ "$status" -eq 0 ] && return
  (cd "$out" && rm -f "${files[@]}" measured.sst.rank*)
  if [ -n "$made" ]; then rmdir "$out" 2>/dev/null || true; fi
  echo "the demonstration failed (exit code $status); nothing of it is left in $out" >&2
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

title '1/5  Which chunk size for GPT-2 medium on 8 x A100-40GB? (offline)'
run shardscope search --model gpt2-medium --world-size 8 --cluster a100-40gb-x8

title '2/5  How fast is this machine? (so that the prediction is about it)'
if [ -n "$machine" ]; then
  echo "  as given: $machine"
elif [ -f "$out/machine.json" ]; then
  machine=$out/machine.json
  echo "  measured before: $machine (remove it to measure anew)"
else
  machine=$out/machine.json
  files+=(machine.json)
  run shardscope calibrate -o "$machine" --seconds "${SHARDSCOPE_DEMO_SECONDS:-10}" | sed '1p;$!d'
fi

title '3/5  Train a small GPT on two ranks, parameters sharded (ZeRO-3) in chunks'
search=(shardscope search --model gpt2-nano --world-size 2 --min-chunk 64Ki --max-chunk 128Ki --no-forecast --json)
show "${search[@]}" '| ...'
"${search[@]}" >"$out/search.json"
chunk=$(json_value chunk_elements <"$out/search.json")
chunks=$(json_value chunk_count <"$out/search.json")
echo "  $chunks chunks of $chunk elements"
[ "$chunks" -ge 8 ] || fail "$chunks chunks are fewer than eight"
run shardscope train --model gpt2-nano --data "text:$text" --ranks 2 --stage 3 --unit chunk --chunk-size "$chunk" \
  --micro-batch 2 --lr 2e-3 --steps "$steps" --print-every 5 --cluster "$machine" --log "$out/loss.jsonl" \
  --trace "$out/measured.sst" --trace-predicted "$out/predicted.sst"

title '4/5  Was the prediction true? Every byte and every call must be equal'
run shardscope compare "$out/predicted.sst" "$out/measured.sst" --check --ops 5

title '5/5  Did it learn?'
# The mean loss of the last five steps beside that of the first step.
sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' "$out/loss.jsonl" | awk '
  { loss[NR] = $1 }
  END {
    for (i = NR - 4; i <= NR; ++i) last += loss[i] / 5
    printf "loss %.3f at the first step, %.3f over the last five of %d\n", loss[1], last, NR
    exit !(NR > 10 && last < 0.7 * loss[1])
  }' || fail 'the loss has not fallen to 70 % of its first value'

for trace in predicted measured; do shardscope convert "$out/$trace.sst" "$out/$trace.perfetto-trace"; done

title 'Done'
cat <<END
$machine              how fast this machine is  (--cluster takes it)
$out/predicted.sst             what the simulator predicted
$out/measured.sst              what the two ranks did  (shardscope inspect, shardscope compare)
$out/measured.perfetto-trace   the same for https://ui.perfetto.dev; predicted.perfetto-trace beside it
$out/loss.jsonl                loss of every step
END
