#!/bin/bash
# `make test-pytorch`: the dry run's programs on PyTorch from PyPI, each version in a virtual environment outside of the tree.
#   TORCH        versions ("2.6.0 2.11.0")
#   ENVIRONMENTS where the virtual environments are made and kept (~/.cache/shardscope/pytorch; 6 GB each)
#   PYTHON       interpreters that have PyTorch already; then no environment is made
#   RECORDINGS   a folder of recordings of GPUs to compare with
#   PROGRAMS     some of the programs only
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
environments=${ENVIRONMENTS:-$HOME/.cache/shardscope/pytorch}
interpreters=${PYTHON:-}
if [ -z "$interpreters" ]; then
  for version in ${TORCH:-2.6.0 2.11.0}; do
    environment=$environments/$version
    if ! [ -e "$environment/complete" ]; then
      echo "installing PyTorch $version into $environment"
      python3 -m venv --clear "$environment" ||
        { echo "python3 makes no virtual environment: apt-get install python3-venv" >&2; exit 69; }
      "$environment/bin/pip" install --quiet --upgrade pip setuptools wheel ninja
      "$environment/bin/pip" install --quiet "torch==$version" numpy transformers accelerate
      # Its build asks PyTorch what it can do; where it fails, its programs are left out.
      "$environment/bin/pip" install --quiet --no-build-isolation deepspeed || true
      touch "$environment/complete"
    fi
    interpreters+=" $environment/bin/python3"
  done
fi
failed=0
for python in $interpreters; do
  # shellcheck disable=SC2086  # PROGRAMS is a list
  "$here/run.py" --shardscope "${SHARDSCOPE:-shardscope}" --python "$python" \
    ${RECORDINGS:+--recordings "$RECORDINGS"} ${PROGRAMS:-} || failed=1
  if [ -z "${PROGRAMS:-}" ]; then
    "$here/ranks/run.py" --shardscope "${SHARDSCOPE:-shardscope}" --python "$python" || failed=1
    "$python" -B "$here/samples_test.py" || failed=1
    "$python" -B "$here/unwritten_test.py" || failed=1
  fi
done
exit "$failed"
