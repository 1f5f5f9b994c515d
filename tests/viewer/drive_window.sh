#!/bin/bash
# drive_window.sh PROGRAM TRACE...: the real window under Xvfb, driven by xdotool, judged by the lines of --log.
# Exits 77 (skipped) where Xvfb, xdotool or OpenGL is missing.
set -euo pipefail
program=$1
shift
for tool in Xvfb xdotool; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done

work=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT

# The server chooses a free display itself.
Xvfb -displayfd 3 -screen 0 1280x800x24 -nolisten tcp 3>"$work/display" >"$work/xvfb" 2>&1 &
pids+=($!)
for _ in $(seq 200); do [ -s "$work/display" ] && break; sleep 0.05; done
[ -s "$work/display" ] || { echo "skipped: Xvfb does not start: $(cat "$work/xvfb")"; exit 77; }
DISPLAY=:$(head -n 1 "$work/display")
export DISPLAY LIBGL_ALWAYS_SOFTWARE=1

"$program" view "$@" --size 1200x760 --log 2>"$work/log" &
viewer=$!
pids+=("$viewer")

fail() {
  echo "FAILED: $1"
  echo "log:"; tail -n 5 "$work/log"
  exit 1
}
# await WHAT PATTERN: until the last line of the log matches.
await() {
  for _ in $(seq 400); do
    tail -n 1 "$work/log" 2>/dev/null | grep -q -- "$2" && { echo "ok: $1"; return; }
    if ! kill -0 "$viewer" 2>/dev/null; then
      grep -q 'OpenGL\|no window' "$work/log" && { echo "skipped: $(head -n 1 "$work/log")"; exit 77; }
      fail "$1: the viewer ended"
    fi
    sleep 0.05
  done
  fail "$1: nothing matches $2"
}
number() { tail -n 1 "$work/log" | sed "s/.*\"$1\":\(-\{0,1\}[0-9]*\).*/\1/"; }
# A tap shorter than a frame may be lost in ImGui before 1.87.
tap() { xdotool keydown "$1"; sleep 0.15; xdotool keyup "$1"; }

await "the window opens and loads" '"view_begin_ns"'
window=$(xdotool search --name Shardscope | head -n 1)
xdotool windowfocus "$window" || true
begin=$(number view_begin_ns) end=$(number view_end_ns)

xdotool mousemove --window "$window" 400 300
for _ in 1 2 3 4; do xdotool click 4; sleep 0.1; done
for _ in $(seq 100); do [ "$(number view_end_ns)" -lt "$end" ] && break; sleep 0.05; done
[ "$(number view_end_ns)" -lt "$end" ] || fail "the wheel zooms in"
echo "ok: the wheel zooms in"

tap f
await "F fits everything again" "\"view_begin_ns\":$begin,\"view_end_ns\":$end"

xdotool mousemove --window "$window" 300 250 keydown shift mousedown 1
sleep 0.15
xdotool mousemove --window "$window" 360 250; sleep 0.15
xdotool mousemove --window "$window" 420 250; sleep 0.15
xdotool mouseup 1 keyup shift
await "shift + drag selects a range" '"range":\['

tap Escape
await "escape drops it" '"range":null'

tap p
await "P goes to the peak" '"marker_ns":[0-9]*,"tab":"live"'

tap slash
await "/ opens the search field" '"search_field":true'
sleep 0.3
xdotool type --delay 120 "step chunk 1"
await "what is typed is the query" '"query":"step chunk 1"'
tap Return
await "Enter selects the first match" '"selected":"step chunk 1"'

xdotool key --delay 150 shift+slash
await "? shows the keys" '"help":true'
tap Escape
await "escape closes them" '"help":false'

tap t
await "T changes the theme" '"theme":"light"'

xdotool mousemove --window "$window" 400 300
end=$(number view_end_ns)
xdotool keydown s; sleep 0.3; xdotool keyup s
for _ in $(seq 100); do [ "$(number view_end_ns)" -gt "$end" ] && break; sleep 0.05; done
[ "$(number view_end_ns)" -gt "$end" ] || fail "S zooms out"
echo "ok: S zooms out"
kill -0 "$viewer" || fail "the viewer is still there"
kill "$viewer"
wait "$viewer" 2>/dev/null || true

# A run in progress: the file grows, and a view of everything shows everything again.
last=${!#}
size=$(stat -c %s "$last")
head -c $((size / 2)) "$last" >"$work/growing.sst"
"$program" view "$work/growing.sst" --size 1200x760 --log 2>"$work/log" &
viewer=$!
pids+=("$viewer")
await "a part of a trace opens" '"view_begin_ns"'
end=$(number view_end_ns)
tail -c +$((size / 2 + 1)) "$last" >>"$work/growing.sst"
for _ in $(seq 400); do [ "$(number view_end_ns)" -gt "$end" ] && break; sleep 0.05; done
[ "$(number view_end_ns)" -gt "$end" ] || fail "a file that grew is read again"
echo "ok: a file that grew is read again"
window=$(xdotool search --name Shardscope | head -n 1)
xdotool windowfocus "$window" || true
xdotool mousemove --window "$window" 400 300
tap m
sleep 0.3
xdotool type --delay 120 "look here"
tap Return
for _ in $(seq 200); do grep -q 'look here' "$work/growing.sst.notes.json" 2>/dev/null && break; sleep 0.05; done
grep -q 'look here' "$work/growing.sst.notes.json" || fail "a note is kept beside the trace"
echo "ok: a note is kept beside the trace"

# What cannot be read is a panel, and the window stays; the exit code says what it was.
head -c 100 /dev/urandom >"$work/broken.sst"
kill "$viewer"
wait "$viewer" 2>/dev/null || true
"$program" view "$work/broken.sst" --log 2>"$work/log" &
viewer=$!
pids+=("$viewer")
for _ in $(seq 200); do xdotool search --name Shardscope >/dev/null 2>&1 && break; sleep 0.05; done
sleep 0.5
kill -0 "$viewer" || fail "a broken file is shown as a panel"
echo "ok: a broken file is shown as a panel"
echo "the window did all it was asked to"
