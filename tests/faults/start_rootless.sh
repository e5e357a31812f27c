#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Give alice a dockerd of her own, as dockerd-rootless-setuptool.sh does; wait until it answers.
# With "again" her service manager is restarted first, and with it all that she runs.
set -eu
folder=/home/alice/.config
if [ "${1-}" = again ]; then
    systemctl restart user@1000.service
else
    grep -q '^alice:' /etc/subuid || usermod --add-subuids 300000-365535 --add-subgids 300000-365535 alice
    echo tun > /etc/modules-load.d/tun.conf
    modprobe tun
    mkdir -p $folder/docker $folder/systemd/user/default.target.wants
    cat > $folder/systemd/user/docker.service << 'UNIT'
[Service]
Environment=PATH=/usr/share/docker.io/contrib:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/usr/share/docker.io/contrib/dockerd-rootless.sh
LimitNOFILE=infinity
LimitNPROC=infinity
LimitCORE=infinity
LimitMEMLOCK=infinity
Delegate=yes
UNIT
    ln -sf ../docker.service $folder/systemd/user/default.target.wants
    cp /etc/docker/daemon.json $folder/docker
    chown -R alice: $folder
    loginctl enable-linger alice
fi
for second in $(seq 120); do
    if DOCKER_HOST=unix:///run/user/1000/docker.sock docker version > /dev/null 2>&1; then
        exit 0
    fi
    sleep 1
done
journalctl -n 30 _UID=1000
exit 1
