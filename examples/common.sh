# For the examples' run.sh: puts the programs on PATH, and shows commands as they are run.
if ! command -v shardscope >/dev/null; then
  built="$(dirname "${BASH_SOURCE[0]}")/../build/release/bin"
  if [ ! -x "$built/shardscope" ]; then
    echo "there is no program 'shardscope' on PATH and none in build/release/bin: 'make build' makes it" >&2
    exit 69
  fi
  PATH="$(cd "$built" && pwd):$PATH"
fi

title() { printf '\n== %s\n' "$1"; }
fail() { echo "CHECK FAILED: $1" >&2 && exit 1; }

# show COMMAND...: prints the command as one would type it.
show() { printf '$' && printf ' %s' "$@" && printf '\n'; }
# run COMMAND...: shows it and runs it.
run() { show "$@" && "$@"; }
# must_exit CODE COMMAND...: shows it, runs it, and fails when it exits otherwise.
must_exit() {
  local expected=$1 code=0
  shift
  show "$@"
  "$@" || code=$?
  echo "(exit code $code)"
  [ "$code" -eq "$expected" ] || fail "exit code $code, $expected was expected"
}
# json_value KEY: the first value of a key in the JSON on stdin, which the programs write with one key a line.
json_value() { sed -n "/^ *\"$1\": /{s/^[^:]*: \"\{0,1\}\([^\",]*\).*/\1/p;q}"; }
