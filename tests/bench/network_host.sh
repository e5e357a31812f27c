#!/bin/sh
# Be one host of a fleet: a network, a name and processes of its own, and sshd as what runs.
# Usage: unshare --net --mount --pid --uts --fork --kill-child sh network_host.sh TREE NUMBER KIND
# Reads a line first: by then somebody has put eth0 into this network.
# SPDX-License-Identifier: GPL-3.0-or-later
set -eu
tree=$1 number=$2 kind=$3
read -r _
ip link set lo up
ip addr add "10.77.$((number / 200)).$((number % 200 + 2))/16" dev eth0
ip link set eth0 up
hostname "node$number"
mount -t proc proc "$tree/proc"
mount -t tmpfs -o mode=0755 tmpfs "$tree/run"
mount --rbind /dev "$tree/dev"
mkdir "$tree/run/sshd"
set --
case $kind in
mute) exec python3 -c 'import socket, time
held = socket.create_server(("", 22), backlog=100)
time.sleep(10**6)' ;;
stalls) set -- -o 'ForceCommand=sleep 1000000' ;;
closes) set -- -o 'ForceCommand=printf "{\"chang"; kill -9 $PPID' ;;
garbage) set -- -o 'ForceCommand=head -c 3000000 /dev/urandom' ;;
*) chroot "$tree" cron ;;
esac
exec chroot "$tree" /usr/sbin/sshd -D -p 22 -o MaxStartups=1000 "$@"
