#!/bin/bash
# fresh.sh PART...: what a bare Debian 12 machine makes of HEAD. Sets up a root of its own (debootstrap --variant=minbase,
# `make` and a clone of HEAD, nothing else; package sources and proxy settings as on this machine), runs the parts in it,
# prints what each took and takes the root away, also when it is interrupted. Parts, all but user in one root as root:
#   demo   make demo
#   test   make test; its JUnit file is brought out as build/fresh/test-results.xml
#   wheel  make wheel-tested after test, of what that compiled; its JUnit file comes out as build/fresh/wheel-results.xml
#   user   make demo in another such root, as an ordinary user with sudo
# fresh.sh --possible says whether all that may be done here and does nothing.
# $FRESH_PRESET is the preset that `test` and `wheel` build (release). $FRESH_CUDA is a folder with NVIDIA's toolkit, which no Debian
# package brings: the root sees it, read-only, as /usr/local/cuda.
# $FRESH_DIR is where the roots go (4 GB; /var/tmp without it). Exits 69 where a bare root cannot be set up.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
release=bookworm
preset=${FRESH_PRESET:-release}

refuse() { echo "fresh: no bare Debian 12 here: $1" >&2 && exit 69; }

# ---- In namespaces of its own, so that no mount and no process outlives it: fresh.sh --inside ROOT USER TARGET
if [ "${1:-}" = --inside ]; then
  root=$2 user=$3 target=$4
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || true  # the machine's topology, for MPI; not everywhere allowed
  mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
  if [ -n "${FRESH_CUDA:-}" ]; then
    mkdir -p "$root/usr/local/cuda"
    mount --bind -o ro "$FRESH_CUDA" "$root/usr/local/cuda"
  fi
  home=/root
  [ "$user" = root ] || home=/home/$user
  settings=(HOME="$home" USER="$user" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}")
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL; do
    [ -z "${!name:-}" ] || settings+=("$name=${!name}")
  done
  [ ! -f "$root/fresh/authorities" ] || settings+=(PIP_CERT=/fresh/authorities)
  # make runs each line of a recipe with a shell that notes what the line took.
  exec chroot --userspec="$user:$user" "$root" /usr/bin/env -i "${settings[@]}" \
    /bin/bash -c "cd '$home/shardscope' && exec /bin/bash /fresh/timed -c 'make $target SHELL=/fresh/timed'"
fi

# ---- May we?
[ "$(id -u)" -eq 0 ] || refuse 'that needs root (sudo make fresh)'
command -v debootstrap >/dev/null || refuse "debootstrap is not installed (apt-get install debootstrap)"
command -v git >/dev/null || refuse 'git is not installed'
commit=$(git -C "$top" rev-parse HEAD 2>/dev/null) || refuse "$top is no clone of a repository"
unshare --mount --pid --fork true 2>/dev/null || refuse 'this machine allows no namespaces of processes and mounts (unshare)'
[ "${1:-}" = --possible ] && exit 0
[ $# -gt 0 ] || set -- demo test user
for part in "$@"; do
  case $part in demo | test | wheel | user) ;; *) echo "fresh: there is no part '$part': demo, test, wheel, user" >&2 && exit 2 ;; esac
done

# ---- Whatever happens, nothing stays.
work=$(mktemp -d "${FRESH_DIR:-/var/tmp}/shardscope-fresh.XXXXXX") || refuse "no folder for it in ${FRESH_DIR:-/var/tmp}"
child=
clean_up() {
  local status=$?
  trap '' INT TERM HUP
  { [ -z "$child" ] || kill -KILL -- "-$child"; wait; } 2>/dev/null
  # All mounts are in namespaces that have ended. One that is here nevertheless would be emptied too: leave it alone.
  if grep -qF " $work/" /proc/self/mounts; then
    echo "fresh: something is mounted under $work: it stays" >&2
  else
    rm -rf --one-file-system "$work" 2>/dev/null || { sleep 1 && rm -rf --one-file-system "$work"; }
  fi
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# attended COMMAND...: runs it in namespaces and a process group of its own, which clean_up ends.
set -m  # without it a command in the background would ignore SIGINT, and so would everything that is tested in it
attended() {
  local status=0
  unshare --mount --pid --fork --kill-child "$@" </dev/null &
  child=$!
  wait "$child" || status=$?
  child=
  return "$status"
}
TIMEFORMAT='%0R s wall, %0U s user, %0S s system'
timed() { { time "${@:2}" 2>&3; } 3>&2 2>"$work/took"; local status=$?; echo "fresh: $1: $(cat "$work/took")"; return $status; }

# ---- The bare root: $work/bare, of which each run gets a copy.
bare=$work/bare
# This machine's sources where it is a Debian 12 too, its settings for fetching in any case.
mirror=http://deb.debian.org/debian
own_sources=
if grep -qx "VERSION_CODENAME=$release" /etc/os-release; then
  own_sources=yes
  found=$(apt-get indextargets --format '$(RELEASE) $(SITE)' 'Created-By: Packages' 2>/dev/null | sed -n "s/^$release //p" | head -n 1) || true
  mirror=${found:-$mirror}
fi
proxy=
eval "$(apt-config shell proxy Acquire::http::Proxy)"
[ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy=${http_proxy:-$proxy}

take_over_apt() {
  { apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' || true
    [ -z "${http_proxy:-}" ] || echo "Acquire::http::Proxy \"$http_proxy\";"
    [ -z "${https_proxy:-}" ] || echo "Acquire::https::Proxy \"$https_proxy\";"; } >"$bare/etc/apt/apt.conf.d/00machine"
  cp -a /etc/apt/auth.conf /etc/apt/auth.conf.d "$bare/etc/apt/" 2>/dev/null || true
  if [ -n "$own_sources" ]; then
    rm -f "$bare/etc/apt/sources.list"
    for name in sources.list sources.list.d preferences preferences.d trusted.gpg trusted.gpg.d keyrings; do
      if [ -e "/etc/apt/$name" ]; then cp -a "/etc/apt/$name" "$bare/etc/apt/"; fi
    done
    # Keys that sources name by path, and authorities where a source is fetched by https.
    { grep -rhoiE 'signed-by[:=] *[^] ]+' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null || true; } |
      sed 's/^[^:=]*[:=] *//' | tr ',' '\n' | sort -u | while read -r key; do
      if [ -f "$key" ]; then mkdir -p "$bare$(dirname "$key")" && cp "$key" "$bare$key"; fi
    done
  fi
  if grep -rqs 'https://' /etc/apt/sources.list /etc/apt/sources.list.d && [ -f /etc/ssl/certs/ca-certificates.crt ]; then
    mkdir -p "$bare/etc/ssl/certs" && cp -L /etc/ssl/certs/ca-certificates.crt "$bare/etc/ssl/certs/"
  fi
  cp -L /etc/resolv.conf "$bare/etc/resolv.conf"
  { cat /etc/hosts && echo "127.0.0.1 $(hostname)"; } >"$bare/etc/hosts"
}

set_up() {
  attended debootstrap --variant=minbase --include=make "$release" "$bare" "$mirror" >"$work/debootstrap" 2>&1 ||
    { tail -n 5 "$work/debootstrap" >&2; return 1; }
  take_over_apt || return 1
  git clone -q --depth 1 "file://$top" "$bare/root/shardscope" || return 1
  [ "$(git -C "$bare/root/shardscope" rev-parse HEAD)" = "$commit" ] || { echo "fresh: the clone is not HEAD" >&2; return 1; }
  mkdir "$bare/fresh"
  # Whom this machine trusts, for pip: the root may get authorities of its own, which know no proxy of ours.
  cp -L /etc/ssl/certs/ca-certificates.crt "$bare/fresh/authorities" 2>/dev/null || true
  cat >"$bare/fresh/timed" <<'END'
#!/bin/bash
# As /bin/bash -c LINE, and notes in /fresh/times what the line took.
TIMEFORMAT='%0R s wall, %0U s user, %0S s system'
exec 3>&2
report=$(mktemp)
{ time /bin/bash "$@" 2>&3; } 2>"$report"
status=$?
echo "$(cat "$report"): $(head -n 1 <<<"$2" | cut -c 1-70)" >>/fresh/times
rm -f "$report"
exit "$status"
END
  chmod 755 "$bare/fresh/timed"
}
timed 'set up a bare root' set_up || refuse 'the root could not be set up'

# run_in ROOT USER TARGET: make TARGET there, and what it took.
run_in() {
  local root=$1 user=$2 target=$3 status=0
  echo "fresh: make $target as $user on Debian $(cat "$root/etc/debian_version")," \
    "$(chroot "$root" dpkg-query -W | wc -l) packages before, commit $(cut -c 1-12 <<<"$commit")"
  : >"$root/fresh/times"
  chmod 666 "$root/fresh/times"
  attended "$0" --inside "$root" "$user" "$target" || status=$?
  echo "fresh: make $target as $user $([ "$status" -eq 0 ] && echo passed || echo "FAILED ($status)")," \
    "$(chroot "$root" dpkg-query -W | wc -l) packages after; it and its parts took"
  sed 's/^/fresh:   /' "$root/fresh/times"
  return "$status"
}

# bring_out FILE NAME: FILE of the build folder in the root as build/fresh/NAME.
bring_out() {
  mkdir -p "$top/build/fresh"
  rm -f "$top/build/fresh/$2"
  cp "$root/root/shardscope/build/$preset/$1" "$top/build/fresh/$2" 2>/dev/null
}

status=0
for part in "$@"; do
  root=$work/root
  [ "$part" = user ] || [ -d "$root" ] || cp -a "$bare" "$root"
  case $part in
    demo) run_in "$root" root demo || status=1 ;;
    test)
      run_in "$root" root "test PRESET=$preset" || status=1
      bring_out test-results.xml test-results.xml || status=1
      ;;
    wheel)
      run_in "$root" root "wheel-tested PRESET=$preset" || status=1
      bring_out wheel/test-results.xml wheel-results.xml || true  # there is none where PyPI cannot be reached
      ;;
    user)
      rm -rf --one-file-system "$root"
      cp -a "$bare" "$work/user"
      { chroot "$work/user" apt-get update -qq &&
        chroot "$work/user" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends sudo; } >"$work/sudo" 2>&1 ||
        { cat "$work/sudo" >&2; exit 1; }
      chroot "$work/user" useradd --create-home --shell /bin/bash someone
      echo 'someone ALL=(ALL) NOPASSWD: ALL' >"$work/user/etc/sudoers.d/someone"
      mv "$work/user/root/shardscope" "$work/user/home/someone/"
      chroot "$work/user" chown -R someone:someone /home/someone
      run_in "$work/user" someone demo || status=1
      ;;
  esac
done
exit "$status"
