# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of containerd's own containers and of its config.toml, as a node of Kubernetes has them."""

from __future__ import annotations

import json
import shlex

from tests.faults.fault import Culprit, Fault, Policy, write
from tests.places.docker.faults import RESTART, RUNNING
from tests.places.systemd.faults import LOADED

CONF = "/etc/containerd/config.toml"
BASE = "/etc/containerd/pods.json"
LOW_UNIT = "/etc/systemd/system/containerd.service.d/20-low.conf"
RESTART_BOTH = f"systemctl daemon-reload; systemctl restart containerd; {RESTART}"
ASKED: Policy = {
    "containers": {"containerd": {"limits": {"nofile": {"soft": 65536, "hard": 1048576}}}}
}
RIGHT = [{"type": "RLIMIT_NOFILE", "soft": 65536, "hard": 1048576}]
FILES = "mkdir -p /srv/box/proc; cp /bin/busybox /srv/box"
END_BOX = "ctr task kill -s KILL box; ctr task delete --force box; ctr container delete box"
BOX = "^container:containerd/default/box nofile"


FEW = {"linux": {"resources": {"pids": {"limit": 100}}}}
TASKS: Policy = {"containers": {"containerd": {"tasks": 500}}}


def start(*limits: dict[str, object], most: int = -1) -> str:
    """Return how a container is started with these limits, and inherits all others.

    :param most: How many tasks it may hold.
    """
    spec = {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["/busybox", "sleep", "9999"],
            "cwd": "/",
            "rlimits": limits,
        },
        "root": {"path": "/srv/box"},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {
            "namespaces": [{"type": name} for name in ("pid", "mount", "ipc", "network")],
            "cgroupsPath": "/default/box",
            "resources": {"pids": {"limit": most}},
        },
    }
    return f"echo {shlex.quote(json.dumps(spec))} > /srv/spec.json; ctr run -d --config /srv/spec.json box"


def again(*limits: dict[str, object]) -> str:
    """Return how the container is started anew."""
    return f"{{ {END_BOX}; }} || true; {start(*limits)}"


def box(name: str, make: str, words: str, person: str) -> Fault:
    return Fault(
        f"containerd: {name}",
        f"{FILES}; {make}",
        (Culprit(words=words),),
        (f"{BOX} soft", f"{BOX} hard"),
        ASKED,
        touches=(RUNNING, LOADED),
        person=person,
    )


FAULTS: list[Fault] = []
MORE = [
    Fault(
        "containerd: a specification for all pods",
        write(BASE, json.dumps({"process": {"rlimits": [{**RIGHT[0], "soft": 1024, "hard": 4096}]}}))
        + "; "
        + write(CONF, "version = 2", '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]',
                '  runtime_type = "io.containerd.runc.v2"', f'  base_runtime_spec = "{BASE}"')
        + f"; {RESTART_BOTH}",
        (Culprit(CONF, "base_runtime_spec"),),
        ("^new-container:containerd nofile soft", "^new-container:containerd nofile hard"),
        ASKED,
        touches=(CONF, RUNNING),
        uses=(LOADED,),
    ),
    Fault(
        "containerd: few tasks for all pods",
        write(BASE, json.dumps({"process": {"rlimits": RIGHT}, **FEW}))
        + "; "
        + write(CONF, "version = 2", '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]',
                '  runtime_type = "io.containerd.runc.v2"', f'  base_runtime_spec = "{BASE}"')
        + f"; {RESTART_BOTH}",
        (Culprit(CONF, "base_runtime_spec"),),
        ("^new-container:containerd tasks",),
        TASKS,
        touches=(CONF, RUNNING),
        uses=(LOADED,),
    ),
    box("a container with few tasks", start(*RIGHT, most=100), "was started with",
        again(*RIGHT))._replace(policy=TASKS, shows=("^container:containerd/default/box tasks",)),
    box("a container that ctr gives its own limit",
        "ctr run -d --rootfs /srv/box box /busybox sleep 9999", "of its own", again(*RIGHT)),
    box("a container that is older than its limits",
        write(LOW_UNIT, "[Service]", "LimitNOFILE=1024:4096")
        + f"; {RESTART_BOTH}; {start()}; rm {LOW_UNIT}; {RESTART_BOTH}",
        "older|since|keeps", again()),
    box("a container that was lowered while it runs",
        start(*RIGHT) + "; prlimit --pid $(ctr task ls | awk '$1 == \"box\" {print $2}') --nofile=1024:4096",
        "changed", again(*RIGHT)),
]  # fmt: skip
