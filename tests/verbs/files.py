# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of the made-up host: a Debian 12 whose site has written some lines of its own."""

from __future__ import annotations

import json

_SESSION = (
    "account required pam_unix.so\nsession required pam_limits.so\nsession required pam_unix.so\n"
)

USERS = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n"
    "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n"
    "alice:x:1000:1000::/home/alice:/bin/sh\n"
    "slurm:x:64030:64030::/nonexistent:/usr/sbin/nologin\n",
    "/etc/group": "root:x:0:\nnogroup:x:65534:\nalice:x:1000:\nslurm:x:64030:\nml:x:2000:alice\n",
    "/etc/shadow": "root:*:19000:0:99999:7:::\nalice:*:19000:0:99999:7:::\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\n",
}
SYSTEM = {
    "/etc/os-release": 'ID=debian\nVERSION_ID="12"\n',
    "/etc/fstab": "UUID=1 / ext4 defaults 0 1\n",
    "/etc/hosts": "127.0.0.1 localhost node1\n",
    "/etc/ssh/sshd_config": "UsePAM yes\n",
    **{f"/etc/pam.d/{name}": _SESSION for name in ("sshd", "su", "sudo", "cron", "login")},
    "/etc/pam.d/systemd-user": "session required pam_limits.so\n",
    "/etc/pam.d/other": "auth required pam_deny.so\naccount required pam_deny.so\n",
}
LIMITS = {
    "/etc/security/limits.conf": "# of the distribution\r\n* soft nofile 800\n@ml - nofile 850\n#end",
    "/etc/security/limits.d/95-late.conf": "*\tsoft  nofile 700\n\xff\nroot - core 0\n",
    "/etc/sysctl.d/99-late.conf": "vm.max_map_count = 70000\n",
}
ENGINES = {
    "/etc/docker/daemon.json": '{\r\n\t"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}},\r\n'
    '\t"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 512, "Soft": 512}}\r\n}',
    "/etc/containers/containers.conf": '[containers]\ndefault_ulimits = [\n  "nofile=700:700",\n]\n',
    "/etc/containers/containers.conf.d/95-site.conf": '[containers]\nshm_size = "32m"\n',
    "/etc/containerd/config.toml": "version = 2\n",
    "/etc/crio/crio.conf": '[crio.runtime]\ndefault_ulimits = [\n  "nofile=700:800",\n  "core=0:0",\n]\n',
    "/run/pods/it/config.json": json.dumps(
        {
            "process": {"rlimits": [{"type": "RLIMIT_NOFILE", "soft": 600, "hard": 600}]},
            "linux": {"resources": {"pids": {"limit": 600}}},
        }
    ),
    "/etc/crio/crio.conf.d/10-site": "[crio.runtime]\npids_limit = 600\n",
    "/etc/slurm/slurm.conf": "ClusterName=c\nSlurmctldHost=node1\nNodeName=node1 CPUs=2\n"
    "PartitionName=batch Nodes=node1 Default=YES\n",
}
SERVICES = {
    "/etc/systemd/system.conf": "[Manager]\n#DefaultLimitNOFILE=1024:524288\n",
    "/etc/systemd/user.conf": "[Manager]\n",
    "/etc/systemd/logind.conf": "[Login]\n",
    "/etc/systemd/system/jobs.service": "[Service]\nExecStart=/usr/bin/jobs\nLimitNOFILE=2048\n",
    "/etc/systemd/system/jobs.service.d/95-site.conf": "[Service]\nLimitMEMLOCK=64K\n",
}
_ID = "ab12" * 16
_STATE = f"/var/lib/docker/containers/{_ID}"
CONTAINERS = {
    "/var/lib/prometheus/node-exporter/apt.prom": "apt_upgrades_pending 0\n",
    "/run/stand-ins/containers.json": json.dumps(
        {
            "list": [{"Id": _ID, "Image": "trainer:1"}],
            "details": [
                {
                    "Id": _ID,
                    "Name": "/lab",
                    "State": {"Pid": 43, "StartedAt": "2026-01-02T03:04:05Z"},
                    "HostnamePath": f"{_STATE}/hostname",
                    "HostConfig": {"ShmSize": 64 * 2**20, "IpcMode": "private"},
                }
            ],
        }
    ),
    f"{_STATE}/hostconfig.json": json.dumps(
        {"Ulimits": [{"Name": "nofile", "Soft": 512, "Hard": 512}]}
    ),
}
HOST = {**USERS, **SYSTEM, **LIMITS, **ENGINES, **SERVICES, **CONTAINERS}

_SYS = "/sys"
PROC = {
    f"{_SYS}/fs/nr_open": "1048576\n",
    f"{_SYS}/fs/file-max": "9223372036854775807\n",
    f"{_SYS}/vm/max_map_count": "65530\n",
    f"{_SYS}/kernel/pid_max": "4194304\n",
    f"{_SYS}/kernel/threads-max": "100000\n",
    "/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/vda ro quiet\n",
    "/meminfo": "MemTotal:       16777216 kB\nMemFree:        8388608 kB\n"
    "MemAvailable:   12582912 kB\nShmem:                 0 kB\n",
}
"""What the kernel says, and takes: each is a file of the host's own."""

_UNIT = "[Service]\nExecStart=/usr/sbin/{0}\n"
_PROGRAMS = {"docker": "dockerd", "ssh": "sshd"}
USR = {
    **{
        f"lib/systemd/system/{name}.service": _UNIT.format(_PROGRAMS.get(name, name))
        for name in ("docker", "slurmd", "ssh", "cron", "containerd", "crio")
    },
    "lib/systemd/system/containerd.service": _UNIT.format("containerd") + "LimitNOFILE=infinity\n",
    "lib/systemd/system/user@.service": "[Service]\nUser=%i\nPAMName=systemd-user\n",
    "lib/systemd/systemd": "",
    "lib/systemd/systemd-sysctl": "",
    "lib/systemd/libsystemd-shared-252.so": "",
    "lib/sysctl.d/50-default.conf": "kernel.sysrq = 0x01b6\n",
}
_POD = "/kubepods.slice/kubepods-pod12345678_1234_1234_1234_123456789012.slice"
_OF_ALICE = "/user.slice/user-1000.slice/user@1000.service"
CGROUPS = {
    "/system.slice/jobs.service/pids.max": "400\n",
    "/system.slice/pids.max": "max\n",
    "/system.slice/mlhost-canary-100.service/pids.max": "300\n",
    f"{_POD}/crio-{'cd34' * 16}.scope/pids.max": "600\n",
    f"{_OF_ALICE}/pids.max": "max\n",
    f"{_OF_ALICE}/app.slice/pids.max": "350\n",
    f"{_OF_ALICE}/app.slice/mlhost-canary-100.service/pids.max": "max\n",
}
