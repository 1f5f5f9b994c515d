#!/bin/bash
# What do ZeRO stages 0 to 3 keep on each device, and what does each send instead?
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
question=(shardscope sweep --like shardscope --model gpt2-xl --world-size 8 --cluster a100-40gb-x8 --precision bf16 --stage 0,1,2,3)

# gib COLUMN...: of the CSV on stdin the stage and these columns, bytes in GiB, a line for each stage.
gib() {
  awk -F, -v wanted="$*" '
    function size(bytes) { return bytes < 100000 ? "-" : sprintf("%.2f", bytes / 2 ^ 30) }
    NR == 1 {
      for (i = 1; i <= NF; ++i) at[$i] = i
      n = split(wanted, columns, " ")
      line = "stage"
      for (i = 1; i <= n; ++i) line = line sprintf("%18s", substr(columns[i], 1, length(columns[i]) - 6))
      print line
      next
    }
    {
      line = sprintf("%5d", $at["stage"])
      for (i = 1; i <= n; ++i) line = line sprintf("%18s", size($at[columns[i] ""]))
      print line
    }'
}

title 'Four stages in one table'
run "${question[@]}" 2>/dev/null

title 'What each rank holds when its memory is fullest, GiB'
answer=$("${question[@]}" --format csv 2>/dev/null)
gib parameter_bytes gathered_bytes gradient_bytes master_parameter_bytes optimizer_state_bytes activation_bytes \
  peak_device_bytes <<<"$answer"

title 'What each rank sends in a step, GiB: whole buffers of its collectives'
gib all_reduce_bytes reduce_scatter_bytes all_gather_bytes sent_bytes <<<"$answer"

cat <<'END'

stage 0  everything stays everywhere: all_reduce sums gradients, and each rank steps all parameters
stage 1  optimizer state and master parameters are cut into eight: reduce_scatter brings gradients to their owners, and
         all_gather the stepped parameters back, which is on the wire what the one all_reduce is
stage 2  so are gradients, each as soon as backward has made it: the same bytes, sent earlier
stage 3  so are parameters: each block is gathered before its forward and again before its backward, and not after the
         step: half as much again on the wire
END

sent() {
  awk -F, -v stage="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i } $at["stage"] == stage { print $at["sent_bytes"] }' \
    <<<"$answer"
}
# To the nearest whole buffer: a few bytes more are those of the loss.
whole() { echo $((($(sent "$1") + $(sent 0) / 2) / $(sent 0))); }
[ "$(whole 1) $(whole 2) $(whole 3)" = '2 2 3' ] || fail 'the stages do not send 1, 2, 2 and 3 times all parameters'
