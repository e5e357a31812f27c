# SPDX-License-Identifier: GPL-3.0-or-later
"""A Docker host in miniature: daemon.json, flags, containerd, and a policy."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.docker.dockerd_flags import Flag
from mlhost_limits.docker.model import World
from mlhost_limits.docker.site import Site, Tools

from tests.worlds.pasted import move_top

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mlhost_limits.core.cause import Cause

PATH = "/etc/docker/daemon.json"
UNIT = "/etc/systemd/system/docker.service.d/site.conf"
PLACE = "new-container:docker"
STOCK = {
    "nofile": (Rlimit(1048576, 1048576),),
    "memlock": (Rlimit(2**23, 2**23),),
    "nproc": (Rlimit(UNLIMITED, UNLIMITED),),
}
POLICY = ContainerPolicy(
    {"nofile": Limit(65536, 1048576), "memlock": Limit(UNLIMITED, UNLIMITED)}, 8 * 2**30
)
HEALTHY = """\
{
  "default-ulimits": {
    "nofile": {"Name": "nofile", "Hard": 1048576, "Soft": 65536},
    "memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}
  },
  "default-shm-size": "8G"
}
"""

SOFT = Requirement(PLACE, "nofile", "soft", 65536)
HARD = Requirement(PLACE, "nofile", "hard", 1048576)
MEMLOCK = Requirement(PLACE, "memlock", "hard", UNLIMITED, unit="bytes")
SHM = Requirement(PLACE, "shm_size", "value", 8 * 2**30, unit="bytes")
START = Requirement(PLACE, "start", "value", exact="a container that starts")
RESTART = ("sh", "-c", "systemctl reset-failed docker; systemctl restart docker")


def make_world(
    text: str | None = HEALTHY,
    flags: Sequence[Flag] = (),
    base: Mapping[str, tuple[Rlimit, ...]] = STOCK,
    nr_open: int = 1048576,
    version: str = "20.10.24",
    path: str = PATH,
) -> World:
    return World(text, path, tuple(flags), base, nr_open, version)


def make_site(policy: ContainerPolicy = POLICY, files: Mapping[str, str] | None = None) -> Site:
    return Site(policy, Tools("docker.service", False, files or {}))


def flag(text: str, line: int = 3, path: str = UNIT) -> Flag:
    name, value = text.partition("=")[::2]
    return Flag(name, value, path, line)


def limit_flag(text: str, line: int = 3, path: str = UNIT) -> Flag:
    return Flag("default-ulimit", text, path, line)


def collect(causes: Sequence[Cause]) -> list[tuple[str, str]]:
    """Return the code of each cause and the place of its line."""
    return [(cause.code, cause.at.place if cause.at else "") for cause in causes]


def carry_out(cause: Cause, folder: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Run the edits of a remedy on files in a folder, and return what became of them.

    :param files: Their text by the path that the commands name.
    """
    for path, text in files.items():
        (folder / path.rpartition("/")[2]).write_text(text)
    for words in cause.remedy.commands:
        if words[0] == "python3" or " > " in words[-1] or "sed -i" in words[-1]:
            moved = words
            for path in files:
                moved = tuple(
                    word.replace(path, str(folder / path.rpartition("/")[2])) for word in moved
                )
            subprocess.run([move_top(word, folder) for word in moved], check=True)
    return {path: (folder / path.rpartition("/")[2]).read_text() for path in files}
