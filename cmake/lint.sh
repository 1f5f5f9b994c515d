#!/bin/bash
# lint.sh BUILD JOBS [FILE...]: clang-format on all our sources, clang-tidy on FILEs or, without, on those changed since
# the main branch's last commit (all where nothing has changed). BUILD holds compile_commands.json.
set -euo pipefail
build=$1 jobs=$2
shift 2
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh')
printf '%s\n' "${sources[@]}" | xargs -P "$jobs" -n 20 clang-format --dry-run -Werror

if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <({ git diff --name-only HEAD; git ls-files --others --exclude-standard; } | grep '\.cpp$' || true)
  if [ ${#files[@]} -eq 0 ]; then mapfile -t files < <(git ls-files -- 'traces/*.cpp' 'sim/*.cpp' 'executor/*.cpp'); fi
fi
# A file that this build leaves out (no MPI here, say) has no compile command.
listed=()
for file in "${files[@]}"; do
  if grep -qF "\"file\": \"$PWD/$file\"" "$build/compile_commands.json"; then listed+=("$file"); fi
done
if [ ${#listed[@]} -eq 0 ]; then exit 0; fi
printf '%s\n' "${listed[@]}" | xargs -P "$jobs" -n 1 clang-tidy --quiet -p "$build" --warnings-as-errors='*' \
  --extra-arg=-Wno-unknown-warning-option
