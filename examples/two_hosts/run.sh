#!/bin/bash
# Four ranks on two hosts, which are network namespaces of this machine: with torchrun's variables and under mpirun.
# Usage: run.sh [cut], as root. cut: the link between the hosts is cut in the middle of each run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../common.sh"
out=$(mktemp -d)
export NAMESPACES=shs$$
veth=s$$

clean_up() {
  for host in 1 2; do
    ip netns pids "$NAMESPACES-$host" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
    ip netns delete "$NAMESPACES-$host" 2>/dev/null || true
  done
  rm -rf "$out"
}
trap clean_up EXIT

make_hosts() {
  for host in 1 2; do
    ip netns add "$NAMESPACES-$host" && ip -n "$NAMESPACES-$host" link set lo up
  done
  ip link add "${veth}v1" netns "$NAMESPACES-1" type veth peer name "${veth}v2" netns "$NAMESPACES-2"
  for host in 1 2; do
    ip -n "$NAMESPACES-$host" address add "10.77.0.$host/24" dev "${veth}v$host"
    ip -n "$NAMESPACES-$host" link set "${veth}v$host" up
  done
}
if ! make_hosts 2>"$out/why"; then
  echo "network namespaces cannot be made here: $(head -n 1 "$out/why")" >&2
  exit 69
fi

# by_torchrun COMMAND...: two ranks on each host, with the variables that torchrun sets. What rank N says is in rankN.
by_torchrun() {
  local rank pids=()
  for rank in 0 1 2 3; do
    ip netns exec "$NAMESPACES-$((rank / 2 + 1))" env MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=demo \
      RANK="$rank" WORLD_SIZE=4 LOCAL_RANK="$((rank % 2))" LOCAL_WORLD_SIZE=2 "$@" >"$out/rank$rank" 2>&1 &
    pids+=($!)
  done
  codes=()
  for rank in 0 1 2 3; do
    local code=0
    wait "${pids[rank]}" || code=$?
    codes+=("$code")
  done
}

# by_mpirun COMMAND...: the same ranks under mpirun, over TCP alone.
by_mpirun() {
  local options=(--allow-run-as-root --bind-to none --oversubscribe -n 4 -H 10.77.0.1:2,10.77.0.2:2
    --mca plm_rsh_agent "$here/agent.sh" --mca pml ob1 --mca btl self,tcp
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24)
  codes=(0)
  ip netns exec "$NAMESPACES-1" unshare --uts bash -c 'hostname host-1 && exec "$@"' bash \
    "$here/launch.sh" 5 mpirun "${options[@]}" -- "$@" >"$out/rank0" 2>&1 || codes=($?)
}

# cut_at STEP: takes the link away when rank 0 has come to that step.
cut_at() {
  for ((i = 0; i < 600; ++i)); do
    ! grep -q "^step $1/" "$out/rank0" 2>/dev/null || break
    sleep 0.1
  done
  ip -n "$NAMESPACES-1" link set "${veth}v1" down
}

train=(shardscope train --model gpt2-nano --data random --sequence 16 --stage 3)

if [ "${1:-}" = cut ]; then
  train+=(--steps 100000 --timeout 3 --transport messages)
  for launcher in by_torchrun by_mpirun; do
    title "The link is cut at step 2, $launcher"
    ip -n "$NAMESPACES-1" link set "${veth}v1" up
    rm -f "$out"/rank*
    cut_at 2 &
    cut=$!
    $launcher "${train[@]}"
    wait "$cut"
    grep -h '^shardscope: \|^launch.sh: ' "$out"/rank*
    echo "exit codes: ${codes[*]}"
  done
  exit
fi

train+=(--steps 3 --global-batch 4)
title 'On one host'
show "${train[@]}" --ranks 4
"${train[@]}" --ranks 4 >"$out/rank0"
state=$(grep '^state ' "$out/rank0") && echo "$state"
for launcher in by_torchrun by_mpirun; do
  title "On two hosts, $launcher"
  show "${train[@]}" --transport messages
  $launcher "${train[@]}" --transport messages
  grep '^ranks ' "$out/rank0" || { cat "$out"/rank* && fail "exit codes ${codes[*]}"; }
  [ "$(grep '^state ' "$out/rank0")" = "$state" ] || fail 'the state differs'
  echo "$state"
done
echo 'all the same'
