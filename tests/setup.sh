#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Install what tests and demo need: Debian packages and a virtual environment. Nothing twice.
set -eu
venv=$1
say() { printf '%s\n' "$*" >&2; }

. /etc/os-release 2>/dev/null || ID=unknown
if [ "$ID" != debian ] || [ "${VERSION_ID:-0}" -lt 12 ]; then
    say "This needs Debian 12 or later to build its test host; here is ${PRETTY_NAME:-$ID}."
    exit 1
fi
missing=
for package in python3-venv $(cat tests/host/packages.txt); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok' || missing="$missing $package"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
        say "Run this as root, or install these packages first:$missing"
        exit 1
    fi
    say "Installing Debian packages:$missing"
    mkdir -p build
    if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } > build/apt.log 2>&1; then
        say "apt-get could not install them; see build/apt.log."
        exit 1
    fi
fi
exec sh tests/venv.sh "$venv"
