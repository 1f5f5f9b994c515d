#!/bin/bash
# install_packages.sh TAG...: installs the Debian packages of packages.txt with one of these tags that are missing.
# Quick when none is; says what it does; uses sudo where not root. Elsewhere than on Debian it says what is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()
for tag in "$@"; do
  while read -r name; do packages+=("$name"); done < <(sed -nE "s/^([^# ]+) +# ([a-z]+,)*$tag(,[a-z]+)*:.*/\1/p" packages.txt)
done
if ! command -v dpkg-query >/dev/null; then
  echo "deps: this is no Debian; please see that these or their like are installed: ${packages[*]}"
  exit 0
fi

missing=()
installed=$(dpkg-query -W -f='${binary:Package} ${db:Status-Status}\n' | sed -n 's/^\([^ :]*\).* installed$/\1/p')
for name in "${packages[@]}"; do
  grep -qx -- "$name" <<<"$installed" || missing+=("$name")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "deps: missing: ${missing[*]}" >&2
    echo "deps: there is no sudo here; please run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 69
  fi
  as_root=(sudo)
fi
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}")
echo "deps: installing ${missing[*]}${as_root:+ (with sudo)}"
# dpkg tells every file's story on stdout; what went wrong comes on stderr.
# The lists may be absent (a fresh machine) or too old for the mirror.
if ! apt-cache show "${missing[@]}" >/dev/null 2>&1 || ! "${install[@]}" >/dev/null; then
  echo "deps: refreshing apt's package lists"
  "${as_root[@]}" apt-get update -qq
  "${install[@]}" >/dev/null
fi
