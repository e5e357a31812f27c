# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of tmpfs(5) and fstab(5): a /dev/shm that is too small, now or after a boot."""

from __future__ import annotations

from tests.faults.fault import Culprit, Fault, Policy, write

FSTAB = "/etc/fstab"
UNIT = "/etc/systemd/system/mlhost-shm.service"
REMOUNT = "/bin/mount -o remount,size=50m /dev/shm"
SHOWS = ("^path:/dev/shm size",)
LOW, HIGH = "tmpfs /dev/shm tmpfs size=100m 0 0", "tmpfs /dev/shm tmpfs size=400m 0 0"


def asked(size: str) -> Policy:
    return {"shared_memory": {"size": size}}


FAULTS = [
    Fault(
        "shm: a line of fstab that states little",
        f"echo '{LOW}' >> {FSTAB}; mount -o remount /dev/shm",
        (Culprit(FSTAB, LOW),),
        SHOWS,
        asked("300MiB"),
        touches=(FSTAB, "/dev/shm"),
    ),
    Fault(
        "shm: of two lines the first",
        f"printf '%s\\n' '{LOW}' '{HIGH}' >> {FSTAB}",
        (Culprit(FSTAB, LOW),),
        SHOWS,
        asked("300MiB"),
        touches=(FSTAB, "/dev/shm"),
    ),
    Fault(
        "shm: remounted by hand",
        "mount -o remount,size=50m /dev/shm",
        (Culprit(words="remount"),),
        SHOWS,
        asked("300MiB"),
        touches=(FSTAB, "/dev/shm"),
    ),
    Fault(
        "shm: a unit mounts it anew at boot",
        write(
            UNIT,
            "[Service]",
            "Type=oneshot",
            f"ExecStart={REMOUNT}",
            "[Install]",
            "WantedBy=multi-user.target",
        )
        + f"; systemctl enable -q mlhost-shm.service; {REMOUNT}",
        (Culprit(UNIT, f"ExecStart={REMOUNT}"),),
        SHOWS,
        asked("300MiB"),
        touches=(FSTAB, "/dev/shm", UNIT),
    ),
    Fault(
        "shm: rc.local mounts it anew with a variable",
        write("/etc/rc.local", "#!/bin/sh -e", "S=50m", 'mount -o "remount,size=$S" /dev/shm')
        + "; chmod +x /etc/rc.local; sh /etc/rc.local",
        (Culprit("/etc/rc.local", 'mount -o "remount,size=$S" /dev/shm'),),
        SHOWS,
        asked("300MiB"),
        touches=(FSTAB, "/dev/shm", "/etc/rc.local"),
        person="rm /etc/rc.local",
    ),
    Fault(
        "shm: rc.local mounts it anew in a loop over names",
        write(
            "/etc/rc.local",
            "#!/bin/sh -e",
            "for d in mqueue shm; do mount -o remount,size=50m /dev/$d || :; done",
        )
        + "; chmod +x /etc/rc.local; sh /etc/rc.local",
        (Culprit("/etc/rc.local", "for d in mqueue shm"),),
        SHOWS,
        asked("300MiB"),
        touches=(FSTAB, "/dev/shm", "/etc/rc.local"),
        person="rm /etc/rc.local",
    ),
    Fault(
        "shm: half of the memory is too little",
        "true",
        (Culprit(words="no line|half|nobody"),),
        SHOWS,
        asked("700MiB"),
        touches=(FSTAB, "/dev/shm"),
    ),
]
