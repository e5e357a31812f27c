# SPDX-License-Identifier: BSD-2-Clause
"""Read what decides the limits of CRI-O's containers: its files, its options, what it says."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..containers.read import read_words
from ..core.values import Rlimit
from ..docker.api_read import exchange
from ..docker.dockerd_flags import find_words
from ..docker.unit_read import read_environment
from ..host.daemons import is_daemon, is_in_unit
from ..host.door import read_kernel_file
from ..host.files import list_folder, read_text, under
from ..host.look import Process, may_raise, read_limits
from ..podman.containers_conf import Stated
from ..systemd.unit_read import read_unit
from .causes import ELSEWHERE, UNIT
from .crio_conf import DROP_INS, MAIN, read_conf

PROGRAMS = ("/usr/bin/crio", "/usr/local/bin/crio")
TOLD = "crio's own answer"
_SOCKET = "/run/crio/crio.sock"
_DEEPEST = 8
_SHORT = {"c": "config", "d": "config-dir"}
_NAMES = ("default-ulimits", "pids-limit", *ELSEWHERE)
_USUAL = dict(zip(ELSEWHERE, (MAIN, DROP_INS)))


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
    try:
        content = read_kernel_file(f"{proc}/{pid}/environ")
    except OSError:
        content = b""
    rows = [(row, "") for row in os.fsdecode(content).split("\0")]
    return _pick_options(rows, [(word, "") for word in read_words(pid, proc)[1:]])


def read_unit_options(root: str) -> dict[str, str]:
    """Return the options that the unit of a tree gives crio, and where each is given.

    :raises ValueError: If a line cannot be split into words.
    """
    settings = [one for one in read_unit(UNIT, root) if one.section == "Service"]
    environment = read_environment(settings, root)
    rows = [
        (f"{name}={one.value}", f" of {one.path}:{one.line}") for name, one in environment.items()
    ]
    words = find_words(settings, environment)
    return _pick_options(rows, [(word, f" of {path}:{line}") for word, path, line in words])


def _pick_options(
    rows: Iterable[tuple[str, str]], words: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """Return the options by name; one that says what holds anyhow is left out.

    :param rows: The variables, each with its place; ``words``: the words of the command line.
    """
    found: dict[str, str] = {}
    for row, place in rows:
        name, _sign, value = row.partition("=")
        name = name.replace("CONTAINER_", "", 1).replace("_", "-").lower()
        if row.startswith("CONTAINER_") and name in _NAMES and _USUAL.get(name) != value:
            found[name] = f"{row}{place}"
    for (word, place), (after, _place) in zip(words, [*words[1:], ("", "")]):
        name, sign, value = word.lstrip("-").partition("=")
        name, value = _SHORT.get(name, name), value if sign else after
        if word.startswith("-") and name in _NAMES and _USUAL.get(name) != value:
            found[name] = f"--{name}={value}{place}"
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
