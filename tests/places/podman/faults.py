# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of containers.conf(5), on a host with Podman; they need a guest that has it."""

from __future__ import annotations

from tests.faults.base import PODMAN
from tests.faults.fault import Culprit, Fault, append, merge_policies, sed, write

FOLDER = "/etc/containers/containers.conf.d"
OURS = f"{FOLDER}/90-mlhost.conf"
SITE = f"{FOLDER}/95-site.conf"
NEW = "^new-container:podman "
EXTRA = "podman"
LOW = "/etc/security/limits.d/95-low.conf"
TASKS = merge_policies(PODMAN, {"containers": {"podman": {"tasks": 500}}})
BOX_TASKS = ("^container:podman/box tasks",)
SLICE = "/etc/systemd/system/train.slice"


def later(name: str, lines: tuple[str, ...], culprit: Culprit, *shows: str) -> Fault:
    """Return a drop-in that Podman reads after ours; one that it cannot read is left to a person."""
    make = write(SITE, "[containers]", *lines)
    return Fault(
        f"podman: {name}",
        make,
        (culprit,),
        shows,
        PODMAN,
        (SITE,),
        person=f"rm {SITE}",
        extra=EXTRA,
    )


def running(name: str, options: str, after: str, words: str) -> Fault:
    """Return a container that runs with less than a new one would."""
    start = "podman run -d --name box {} tiny /busybox sleep 9999"
    return Fault(
        f"podman: {name}",
        f"{start.format(options)}; {after}",
        (Culprit(words=words),),
        ("^container:podman/box nofile soft", "^container:podman/box nofile hard"),
        PODMAN,
        person=f"podman rm -f -t 0 box; {start.format('')}",
        extra=EXTRA,
    )


FAULTS = [
    later("a later list with less", ('default_ulimits = ["nofile=1024:4096", "memlock=-1:-1", "core=-1:-1"]',),
          Culprit(SITE, "nofile=1024:4096"), f"{NEW}nofile soft", f"{NEW}nofile hard"),
    later("a later list that leaves one out", ('default_ulimits = ["nofile=65536:1048576", "memlock=-1:-1"]',),
          Culprit(SITE, "default_ulimits", "replace|leave"), f"{NEW}core"),
    later("a size in thousands", ('shm_size = "1g"',), Culprit(SITE, "shm_size"), f"{NEW}shm_size"),
    later("an entry that is none", ('default_ulimits = ["memlock=unlimited"]',),
          Culprit(SITE, "memlock=unlimited"), f"{NEW}start"),
    later("more files than fs.nr_open", ('default_ulimits = ["nofile=-1:-1", "memlock=-1:-1"]',),
          Culprit(SITE, "nofile=-1", "nr_open"), f"{NEW}start"),
    Fault("podman: the environment names another file",
          f"{append('/etc/environment', 'CONTAINERS_CONF=/etc/other.conf')}; touch /etc/other.conf",
          (Culprit("/etc/environment", "CONTAINERS_CONF"),), (f"{NEW}nofile soft",), PODMAN,
          ("/etc/environment",), person="sed -i /CONTAINERS_CONF/d /etc/environment", extra=EXTRA),
    later("no TOML", ('shm_size = "1g',), Culprit(SITE, 'shm_size = "1g'), f"{NEW}start"),
    Fault("podman: a key that is misspelled", sed("s/default_ulimits/default_ulimit/", OURS),
          (Culprit(OURS, "default_ulimit", "key|known"),), (f"{NEW}core",), PODMAN,
          (OURS,), extra=EXTRA),
    Fault("podman: nobody states a size", sed("/shm_size/d", OURS),
          (Culprit(words="no file|nobody"),), (f"{NEW}shm_size",), PODMAN, (OURS,), extra=EXTRA),
    Fault("podman: more than a user's session may have",
          write(LOW, "alice hard memlock 65536"),
          (Culprit(LOW, "alice hard memlock 65536"), Culprit(OURS, words="session")),
          ("^new-container:podman/alice start",),
          merge_policies(PODMAN, {"containers": {"podman": {"users": ["alice"]}}}),
          (LOW,), extra=EXTRA),
    later("a later file with few tasks", ("pids_limit = 100",), Culprit(SITE, "pids_limit = 100"),
          f"{NEW}tasks")._replace(policy=TASKS),
    Fault("podman: nobody states tasks", "true", (Culprit(words="no file"),), (f"{NEW}tasks",),
          merge_policies(PODMAN, {"containers": {"podman": {"tasks": 3000}}}), extra=EXTRA),
    running("created with few tasks", "--pids-limit 100", "true",
            "created")._replace(policy=TASKS, shows=BOX_TASKS),
    running("few tasks by hand", "",
            "echo 100 > /sys/fs/cgroup/machine.slice/libpod-$(podman inspect -f '{{.Id}}' box).scope"
            "/pids.max", "changed")._replace(policy=TASKS, shows=BOX_TASKS),
    running("few tasks for its slice", "--cgroup-parent train.slice", "true", "")._replace(
        make=f"{write(SLICE, '[Slice]', 'TasksMax=100')}; systemctl daemon-reload;"
        " podman run -d --name box --cgroup-parent train.slice tiny /busybox sleep 9999",
        culprits=(Culprit(SLICE, "TasksMax=100"),), policy=TASKS, shows=BOX_TASKS, person=""),
    running("created with less", "--ulimit nofile=1024:2048", "true", "created"),
    running("lowered while it runs", "",
            "prlimit --pid $(podman inspect -f '{{.State.Pid}}' box) --nofile=1024:4096", "changed"),
]  # fmt: skip
