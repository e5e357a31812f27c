#!/bin/sh
# Turn a private tree into a place to log in to: namespaces of its own, sshd as its first process.
# Usage: unshare --mount --pid --fork --kill-child sh native.sh TREE PORT ADDRESS...
# SPDX-License-Identifier: GPL-3.0-or-later
set -eu
mount -t proc proc "$1/proc"
mount -t tmpfs -o mode=0755 tmpfs "$1/run"
mount --rbind /dev "$1/dev"
mkdir "$1/run/sshd"
chroot "$1" cron
tree=$1 port=$2
shift 2
for address; do
    shift
    set -- "$@" -o "ListenAddress=$address"
done
exec chroot "$tree" /usr/sbin/sshd -D -p "$port" -o MaxStartups=1000 "$@"
