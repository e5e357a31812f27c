#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Make the virtual environment that tests and demo run in. Nothing twice.
set -eu
venv=$1
stamp=$venv/installed
if cmp -s requirements-dev.txt "$stamp"; then
    exit 0
fi
printf 'Installing Python packages into %s (half a minute)\n' "$venv" >&2
mkdir -p build
python3 -m venv --clear "$venv"
if ! "$venv/bin/pip" install --disable-pip-version-check -r requirements-dev.txt > build/pip.log 2>&1; then
    echo "pip could not install them; see build/pip.log." >&2
    exit 1
fi
cp requirements-dev.txt "$stamp"
