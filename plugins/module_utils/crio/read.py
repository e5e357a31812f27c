# SPDX-License-Identifier: BSD-2-Clause
"""Read what decides the limits of CRI-O's containers: its files, its options, what it says."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from ..containers.read import read_words
from ..core.values import Rlimit
from ..docker.api_read import exchange
from ..host.daemons import is_daemon, is_in_unit
from ..host.door import read_kernel_file
from ..host.files import list_folder, read_text, under
from ..host.look import Process, may_raise, read_limits
from ..podman.containers_conf import Stated
from .causes import UNIT
from .crio_conf import DROP_INS, MAIN, read_conf

PROGRAMS = ("/usr/bin/crio", "/usr/local/bin/crio")
TOLD = "crio's own answer"
_SOCKET = "/run/crio/crio.sock"
_DEEPEST = 8
_SHORT = {"c": "config", "d": "config-dir"}
_NAMES = ("default-ulimits", "pids-limit", "config", "config-dir")


def find_crio(processes: Iterable[Process]) -> Process | None:
    """Return the crio of this host's own; not one that runs in a container."""
    running = (one for one in processes if one.comm == "crio" and one.uid == 0)
    own = (one for one in running if is_in_unit(one.cgroup, (UNIT,)))
    return next((one for one in own if is_daemon(one.pid, "crio", (UNIT,))), None)


def read_conf_files(root: str = "/") -> dict[str, str]:
    """Return the files that CRI-O reads, as latin-1, by path.

    :raises OSError: If one cannot be read.
    """
    text = read_text(MAIN, root)
    return {**({} if text is None else {MAIN: text}), **dict(_walk(DROP_INS, root, _DEEPEST))}


def _walk(folder: str, root: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield every file below a folder, which counts as an empty one; no link is gone into."""
    for name in list_folder(folder, root) if depth else ():
        path = f"{folder}/{name}"
        yield path, read_text(path, root) or ""
        if not os.path.islink(under(path, root)):
            yield from _walk(path, root, depth - 1)


def read_options(pid: int, proc: str = "/proc") -> dict[str, str]:
    """Return the options of crio's that are about limits, by name, as they are given.

    A variable stands for an option that is not given: ``CONTAINER_PIDS_LIMIT``.
    """
    found: dict[str, str] = {}
    try:
        content = read_kernel_file(f"{proc}/{pid}/environ")
    except OSError:
        content = b""
    for row in os.fsdecode(content).split("\0"):
        name = row.partition("=")[0].replace("CONTAINER_", "", 1).replace("_", "-").lower()
        if row.startswith("CONTAINER_") and name in _NAMES:
            found[name] = row
    words = read_words(pid, proc)
    for word, after in zip(words[1:], [*words[2:], ""]):
        name, sign, value = word.lstrip("-").partition("=")
        name = _SHORT.get(name, name)
        if word.startswith("-") and name in _NAMES:
            found[name] = f"--{name}={value if sign else after}"
    return found


def read_ceilings(process: Process) -> Mapping[str, Rlimit]:
    """Return the limits of crio where it may give no more than it has; none where it may."""
    return {} if may_raise(process.pid) else read_limits(process.pid)


def ask_crio() -> Stated:
    """Return what crio itself says that it gives a new container.

    Source: ``GET /config`` of ``server/inspect.go`` of CRI-O.

    :raises OSError, ValueError: If it does not say.
    """
    try:
        text = exchange("GET", "/config", address=_SOCKET)
    except (OSError, ValueError):
        raise ConnectionError(f"{_SOCKET} does not say what crio gives a container") from None
    return read_conf(TOLD, text.decode("latin-1"))
