#!/bin/bash
# Runs mpirun, and ends it where it waits for a host that is gone: GRACE seconds after a rank of this host has failed.
# Usage: launch.sh GRACE mpirun OPTIONS... -- PROGRAM ARGUMENTS...; exits as mpirun, or with that rank's exit code.
set -uo pipefail
grace=$1 && shift
command=()
while [ "$1" != -- ]; do command+=("$1") && shift; done
shift
failed=$(mktemp -d) || exit 73
"${command[@]}" bash -c '"$@" || { code=$? && echo $code 2>/dev/null >"$0/$OMPI_COMM_WORLD_RANK"; exit $code; }' \
  "$failed" "$@" &
mpirun=$!
trap 'rm -rf "$failed"' EXIT
trap 'kill -TERM "$mpirun"' INT TERM

since=
while kill -0 "$mpirun" 2>/dev/null; do
  if [ -n "$since" ] && [ $((SECONDS - since)) -ge "$grace" ]; then
    code=$(cat "$failed"/* | head -n 1)
    echo "launch.sh: a rank has ended with $code, and mpirun waits for a host that does not answer: ended" >&2
    pkill -KILL -P "$mpirun"  # what it reaches other hosts by
    kill -KILL "$mpirun"
    exit "$code"
  fi
  [ -n "$since" ] || [ -z "$(ls -A "$failed")" ] || since=$SECONDS
  sleep 0.1
done
wait "$mpirun"
