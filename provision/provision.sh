#!/usr/bin/env bash
# Makes a fresh Debian or Ubuntu a lab: provision.sh [USER]
#
# Run as root; the lab will be USER's (root's, if not given), in USER's home. What is already there
# is left alone, so running it again brings the copy up to date and takes seconds.
#
#   the lab       a copy of the tree this script is in, its system and Python packages installed
#   closlab       on everybody's PATH
#   BMv2, p4c     from the p4lang project's packages where they can be had (p4lang.sh); without
#                 them the lab is whole all the same, with its own switch and compiler
#   reports       of runs, served to a browser by a machine that has systemd

set -euo pipefail

source=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
user=${1:-root}
home=$(getent passwd "$user" | cut -d: -f6) || { echo "provision: no user '$user'" >&2; exit 1; }
lab=$home/closlab

say() { printf 'provision: %s\n' "$*" >&2; }

[ "$(id -u)" = 0 ] || { say "run this as root:  sudo bash $0"; exit 1; }

as_user() { runuser -u "$user" -- env HOME="$home" "$@"; }

# Succeeds if a package is installed.
has() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]; }

install_basics() {
    local package missing=()
    for package in rsync ca-certificates curl gpg python3-venv sudo; do
        has "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}"
    apt-get -q update >/dev/null
    DEBIAN_FRONTEND=noninteractive \
        apt-get -q install -y --no-install-recommends "${missing[@]}" >/dev/null
}

copy_lab() {
    [ "$source" = "$lab" ] && return 0
    say "copying the lab to $lab"
    rsync --archive --delete --no-owner --no-group --chown="$user:" \
        --exclude='/.venv*' --exclude=/.set-up.lock --exclude=/.set-up.log --exclude=/runs --exclude=/.vagrant \
        --exclude='__pycache__' --exclude='*.egg-info' "$source/" "$lab/"
    chmod +x "$lab/closlab"
}

# Settings of the kernel that the lab wants, from now on and whenever it starts; not of one that
# belongs to somebody else, as in a container or where a box is made.
set_kernel() {
    local settings=/etc/sysctl.d/60-closlab.conf userns=kernel.apparmor_restrict_unprivileged_userns
    [ -d /run/systemd/system ] || return 0
    {
        # Emulated fabrics live in namespaces; newer Ubuntus keep users from making any unless told.
        [ ! -e "/proc/sys/${userns//.//}" ] || echo "$userns = 0"
        # An interpreted processor ("qemu"; one with hardware's help is "kvm") translates code anew
        # wherever it has not yet seen it. Programs that are loaded where they were the last time
        # start five times as quickly.
        [ "$(systemd-detect-virt 2>/dev/null)" != qemu ] || echo kernel.randomize_va_space = 0
    } >"$settings"
    [ ! -s "$settings" ] || sysctl -q -p "$settings"
}

# The launcher installs what it and the tests need; here, so that the first command need not.
set_up_lab() {
    local log
    log=$(mktemp)
    if ! (cd "$lab" && as_user ./closlab test --collect-only -q) >"$log"; then
        tail -n 20 "$log" >&2
        say "the lab does not work; the whole log is in $log"
        exit 1
    fi
    rm -f "$log"
    ln -sfn "$lab/closlab" /usr/local/bin/closlab
}

serve_reports() {
    [ -d /run/systemd/system ] || return 0
    as_user mkdir -p "$home/runs"
    cat >/etc/systemd/system/closlab-reports.service <<UNIT
[Unit]
Description=Reports of closlab's runs

[Service]
User=$user
ExecStart=/usr/bin/python3 -m http.server 8000 --directory $home/runs
Restart=on-failure

[Install]
WantedBy=multi-user.target
UNIT
    systemctl daemon-reload
    systemctl -q enable closlab-reports.service
    systemctl restart closlab-reports.service
}

install_basics
copy_lab
set_kernel
bash "$source/provision/p4lang.sh" || true  # which says why, and what there is instead
set_up_lab
serve_reports
say "ready:  closlab demo"
