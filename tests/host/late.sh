#!/bin/sh
# Makes the installed chroot a host one can log in to; mmdebstrap's customize hook.
# Nothing here sets a limit, a sysctl, a PAM line or a Docker option: the host is stock.
# SPDX-License-Identifier: GPL-3.0-or-later
set -eu
root=$1

echo host >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 host\n' >"$root/etc/hosts"
echo '/dev/vda / ext4 errors=remount-ro 0 0' >"$root/etc/fstab"

# QEMU's user network always hands out these addresses; static is quicker than DHCP.
cat >"$root/etc/systemd/network/eth0.network" <<'EOF'
[Match]
Name=eth0
[Network]
Address=10.0.2.15/24
Gateway=10.0.2.2
EOF
rm -f "$root/etc/resolv.conf"
echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
chroot "$root" systemctl -q enable systemd-networkd
chroot "$root" systemctl -q disable systemd-networkd-wait-online

# What only costs boot time, or would wake up when the clock jumps after a resume.
for unit in apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer \
    e2scrub_reap.service dpkg-db-backup.timer fstrim.timer man-db.timer; do
    chroot "$root" systemctl -q mask "$unit"
done

chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash alice
echo 'alice ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/alice"
chmod 0440 "$root/etc/sudoers.d/alice"
for home in root home/alice; do
    mkdir -p -m 0700 "$root/$home/.ssh"
    cp "$root/identity.pub" "$root/$home/.ssh/authorized_keys"
done
chroot "$root" chown -R alice:alice /home/alice/.ssh
rm "$root/identity.pub"
