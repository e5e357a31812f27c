#!/bin/sh
# Prepares the chroot before its kernel is installed; mmdebstrap's essential hook.
# SPDX-License-Identifier: GPL-3.0-or-later
set -eu
root=$1

# An initrd with only the drivers of our machine: smaller, so quicker to unpack when
# every instruction is emulated.
mkdir -p "$root/etc/initramfs-tools/conf.d" "$root/usr/share/initramfs-tools/modules.d"
echo 'MODULES=list' >"$root/etc/initramfs-tools/conf.d/small"
printf '%s\n' virtio_pci virtio_blk ext4 >"$root/usr/share/initramfs-tools/modules.d/virtio"
