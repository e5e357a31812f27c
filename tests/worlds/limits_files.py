# SPDX-License-Identifier: GPL-3.0-or-later
"""limits.conf and sysctl files as distributions, packages and people write them."""

from __future__ import annotations

DEBIAN_LIMITS = """\
# /etc/security/limits.conf
#
#Each line describes a limit for a user in the form:
#
#<domain>        <type>  <item>  <value>
#
#*               soft    core            0
#root            hard    core            100000
#@student        hard    nproc           20
#ftp             hard    nproc           0

# End of file
"""
RED_HAT_LIMITS = """\
# /etc/security/limits.conf
#This file sets the resource limits for the users logged in via PAM.
#@faculty        soft    nproc           20
#@student        -       maxlogins       4

# End of file"""
NPROC = """\
# Default limit for number of user's processes to prevent
# accidental fork bombs.

*          soft    nproc     4096
root       soft    nproc     unlimited
"""
AUDIO = "@audio   -  rtprio     95\n@audio   -  memlock    unlimited\n#@audio   -  nice      -19\n"
HAND_MADE = (
    "*\tsoft\tnofile\t1024\r\n*\thard\tnofile\t2048 # why?\r\n\r\nroot - nofile 512\r\nbob -\r\n"
)
NO_LINE_END = "* hard core 0\n@hpc - memlock unlimited\nalice soft nofile 100"

LIMITS = {
    "/etc/security/limits.conf": (DEBIAN_LIMITS, RED_HAT_LIMITS, HAND_MADE, NO_LINE_END, "", "\n"),
    "/etc/security/limits.d/20-nproc.conf": (NPROC, NPROC.replace("\n", "\r\n")),
    "/etc/security/limits.d/25-pw-rlimits.conf": (AUDIO, AUDIO.strip()),
    "/etc/security/limits.d/99-zz.conf": (HAND_MADE, NO_LINE_END, "", "#"),
}

SYSCTL_CONF = """\
#
# /etc/sysctl.conf - Configuration file for setting system variables
#
#kernel.domainname = example.com
#net.ipv4.ip_forward=1
vm.max_map_count = 65530
fs.file-max=100000
"""
SYSCTLS = {
    "/etc/sysctl.d/99-sysctl.conf": (SYSCTL_CONF, SYSCTL_CONF.replace("\n", "\r\n"), ""),
    "/etc/sysctl.d/elasticsearch.conf": ("vm.max_map_count=262144\n", "vm.max_map_count = 5"),
    "/usr/lib/sysctl.d/50-default.conf": (
        "-net.ipv4.conf.all.rp_filter = 2\nkernel.sysrq = 0x01b6\n-kernel.x\n",
    ),
    "/usr/lib/sysctl.d/50-pid-max.conf": ("kernel.pid_max = 4194304\n",),
    "/etc/sysctl.d/60-limits.conf": ("fs.nr_open = 2048576\nfs/file-max = 7\n; said\n\n# more",),
    "/run/sysctl.d/zz.conf": ("vm.max_map_count = 100000\n",),
}
