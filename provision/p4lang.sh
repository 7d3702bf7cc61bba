#!/usr/bin/env bash
# Installs p4c and BMv2 from the p4lang project's binary packages, where this release has them.
#
# What is installed already stays. A machine that cannot have them is told why, and works with
# closlab's own compiler and switch. How it ends:
#
#   0  BMv2 and p4c are here
#   1  the packages could not be installed, of which nothing stays configured
#   2  it was given words, and takes none
#   3  the project has no packages for this system
#   4  the packages cannot be reached from here
#   5  root alone may install them

set -uo pipefail

say() { printf 'provision: %s\n' "$*" >&2; }

# without CODE WHY
without() {
    say "$2; without p4c and BMv2 the lab uses its own compiler and switch," \
        "and the tests that need them skip. Your own build will do: put it on the PATH, in" \
        "/usr/local/bin, say"
    exit "$1"
}

[ $# = 0 ] || { say "it takes no words, and was given: $*"; exit 2; }

if command -v simple_switch_grpc >/dev/null && command -v p4c-bm2-ss >/dev/null; then
    say "BMv2 and p4c are here"
    exit 0
fi

. /etc/os-release
case $ID in
    ubuntu) release=xUbuntu_$VERSION_ID ;;
    debian) release=Debian_$VERSION_ID ;;
    *) without 3 "the p4lang project has no packages for ${PRETTY_NAME:-this system}" ;;
esac

packages=https://download.opensuse.org/repositories/home:/p4lang/$release
list=/etc/apt/sources.list.d/p4lang.list
key=/etc/apt/keyrings/p4lang.gpg
fetch=(curl --fail --silent --show-error --location --connect-timeout 10 --max-time 60)

# Takes back what would make every later apt-get complain.
give_up() {
    rm -f "$list" "$key"
    without 1 "$1"
}

armoured=$("${fetch[@]}" "$packages/Release.key" 2>&1)
case $? in
    0) ;;
    22) without 3 "the p4lang project has no packages for $release (${armoured##*curl: })" ;;
    *) without 4 "the p4lang project's packages for $release cannot be had (${armoured##*curl: })" ;;
esac
[ "$(id -u)" = 0 ] || without 5 "root alone may install packages"
install -d -m 755 /etc/apt/keyrings
gpg --dearmor <<<"$armoured" >"$key" 2>/dev/null || give_up "the packages' key cannot be read"
echo "deb [signed-by=$key] $packages/ /" >"$list"

say "installing p4c and BMv2"
log=$(mktemp)
if ! { apt-get -q update && DEBIAN_FRONTEND=noninteractive \
        apt-get -q install -y --no-install-recommends p4lang-p4c p4lang-bmv2; } >"$log" 2>&1; then
    why=$(grep -m1 '^E:' "$log")
    give_up "p4c and BMv2 could not be installed (${why:-see $log})"
fi
rm -f "$log"
say "installed $(simple_switch_grpc --version 2>&1 | head -n 1) and $(p4c-bm2-ss --version 2>&1 |
    grep -m1 -i version)"
