#!/usr/bin/env bash
# Puts p4c and BMv2 on the PATH: from the p4lang project's binary packages where this release has
# them, or as they were built here.
#
#   bash provision/p4lang.sh
#       installs the packages
#   bash provision/p4lang.sh --from-source DIR [BIN]
#       takes what was built in DIR, which holds checkouts of p4c and behavioral-model, to where it
#       is found, BIN: without it in /usr/local/bin for root, in ~/.local/bin for others
#
# What is installed already stays. A machine that cannot have them is told why, and works with
# closlab's own compiler and switch. How it ends:
#
#   0  BMv2 and p4c are here
#   1  the packages could not be installed, of which nothing stays configured
#   2  it was given other words
#   3  the project has no packages for this system
#   4  the packages cannot be reached from here
#   5  root alone may install them
#   6  DIR does not hold all of them, built and able to run; what it does hold is taken

set -uo pipefail

say() { printf 'provision: %s\n' "$*" >&2; }

# without CODE WHY
without() {
    say "$2; without p4c and BMv2 the lab uses its own compiler and switch," \
        "and the tests that need them skip. Your own build will do: put it on the PATH, in" \
        "/usr/local/bin, say"
    exit "$1"
}

# version_of PATH: what a program says of itself, wherever it does; it fails if that does not run
version_of() {
    local said
    said=$(timeout 60 "$1" --version 2>&1) && grep -m1 '[0-9][.][0-9]' <<<"$said"
}

# newest DIR TEST...: the file below DIR that was made last, of those that pass find's tests
newest() {
    local below=$1; shift
    find -L "$below" -type f "$@" -not -path '*/.libs/*' -printf '%T@ %p\n' 2>/dev/null |
        sort -rn | head -n 1 | cut -d' ' -f2-
}

# put PATH TEXT: a program of our own, that starts one where it lies
put() { rm -f "$1"; printf '#!/bin/sh\n%s "$@"\n' "$2" >"$1" && chmod 755 "$1"; }

# BMv2's prompt finds its parts where they are installed. These are where they lie in a checkout.
prompt_of() {
    local part found parts=
    for part in sswitch_CLI.py runtime_CLI.py bmpy_utils.py bm_runtime/__init__.py \
        sswitch_runtime/__init__.py; do
        found=$(newest "$1" -path "*/$part")
        [ -n "$found" ] || return 1
        parts+=${parts:+:}${found%/"$part"}
    done
    echo "PYTHONPATH='$parts' exec /usr/bin/python3 -c 'import sswitch_CLI; sswitch_CLI.main()'"
}

take_from() {
    local from into=${2:-} program found text declared missing=0
    from=$(cd "$1" 2>/dev/null && pwd -P) || { say "there is no folder $1"; exit 6; }
    [ -n "$into" ] || { [ "$(id -u)" = 0 ] && into=/usr/local/bin || into=$HOME/.local/bin; }
    mkdir -p "$into" || exit 6
    for program in p4c-bm2-ss simple_switch simple_switch_grpc; do
        found=$(newest "$from" -name "$program" -perm -u+x)
        if [ -z "$found" ]; then
            case $program in p4c-*) text=p4c ;; *) text=behavioral-model ;; esac
            say "$from holds no $program: build it as the README of github.com/p4lang/$text says"
            missing=1
        elif ! text=$(version_of "$found"); then
            say "$found does not run: $("$found" --version 2>&1 | tail -n 1)"
            missing=1
        elif [ $program = p4c-bm2-ss ]; then # which finds core.p4 where it is installed
            declared=$(newest "$from" -path '*/p4include/core.p4')
            put "$into/$program" \
                "P4C_16_INCLUDE_PATH='${declared%/core.p4}' exec '$found'" && say "$into/$program: $text"
            [ -n "$declared" ] || { say "$from holds no p4include/core.p4"; missing=1; }
        else
            ln -sf "$found" "$into/$program" && say "$into/$program: $text"
        fi
    done
    program=$into/simple_switch_CLI
    if text=$(prompt_of "$from"); then
        put "$program" "$text"
        if found=$("$program" --help 2>&1); then
            say "$program: ${found%%$'\n'*}"
        else
            say "$program does not run: ${found##*$'\n'} (its Python is in Debian's python3-thrift)"
            missing=1
        fi
    else
        say "$from holds no simple_switch_CLI: build behavioral-model with Thrift"
        missing=1
    fi
    case :$PATH: in *":$into:"*) ;; *) say "$into is not on your PATH" ;; esac
    [ $missing = 0 ] || exit 6
    exit 0
}

case $#,${1:-} in
    0,) ;;
    1,-h | 1,--help) sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    [23],--from-source) take_from "${@:2}" ;;
    *) say "it takes --from-source DIR [BIN], or nothing, and was given: $*"; exit 2 ;;
esac

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
