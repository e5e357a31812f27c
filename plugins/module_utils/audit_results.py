# SPDX-License-Identifier: BSD-2-Clause
"""Read files that somebody names as results of hosts; what is not a result is named."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from .audit_files import read_results
from .fleet import GARBLED, HostResult, read_host
from .fleet_formats import FORMAT

BEGINNINGS = {
    "html": '<meta name="generator" content="mlhost-limits">',
    "json": f'{{"format": "{FORMAT}"',
    "junit": '<testsuites name="mlhost.limits">',
    "csv": "host,place,item,bound,status,",
}
"""What stands at the beginning of a report of ours, whatever it says."""

_LARGEST = 512 * 2**20
_HEAD = 4096


def is_ours(path: Path, kind: str) -> bool:
    """Tell whether a file is a report of ours."""
    try:
        return BEGINNINGS[kind] in _read(path, _HEAD).decode("utf-8", "replace")
    except ValueError:
        return False


def read_hosts(names: Sequence[str], now: str, problems: list[str]) -> Iterator[HostResult]:
    """Yield the hosts of all files, each once; what is wrong with a file is added to the problems.

    What has a problem is yielded as a host that was not checked, so that nobody misses it.

    :param names: Of files, or of folders with a ``HOST.json`` for each host.
    """
    known: dict[str, str] = {}
    for path in _list_files(names):
        try:
            found = list(_read_file(path, now))
        except ValueError as exc:
            problems.append(str(exc))
            found = [HostResult(path.stem, GARBLED, str(exc))]
        for host in found:
            if host.name in known:
                told = f"{path}: is of the host {host.name}, and so is {known[host.name]}"
                problems.append(told)
                host = HostResult(f"{host.name} in {path}", GARBLED, told)
            known[host.name] = str(path)
            yield host


def _list_files(names: Sequence[str]) -> Iterator[Path]:
    for path in map(Path, names):
        files = sorted(path.glob("*.json")) if path.is_dir() else []
        yield from files or [path]


def _read_file(path: Path, now: str) -> Iterator[HostResult]:
    """Yield the hosts of one file.

    :raises ValueError: If it is not a result.
    """
    result = _load_json(path)
    if isinstance(result, dict) and result.get("format") == FORMAT:
        yield from read_results(path, now)
        return
    keys = {"findings", "unreachable", "failed"}
    if not isinstance(result, dict) or not keys & result.keys():
        raise ValueError(f"{path}: is neither a result of the check nor a report")
    host = result.get("host")
    found = read_host(host if isinstance(host, str) and host else path.stem, result, (), now)
    if found.state == GARBLED:
        raise ValueError(f"{path}: {found.reason}")
    yield found


def _read(path: Path, most: int) -> bytes:
    """Return how a file begins; what is not a regular file is neither waited for nor read.

    :raises ValueError: If it cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return file.read(most)
    except OSError as exc:
        raise ValueError(f"{path}: {exc.strerror}") from None
    raise ValueError(f"{path}: is not a regular file, and holds no HOST.json")


def _load_json(path: Path) -> object:
    """Return what a file holds.

    :raises ValueError: If it cannot be read, or is not JSON.
    """
    content = _read(path, _LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"{path}: is larger than {_LARGEST // 2**20} MiB")
    try:
        loaded: object = json.loads(content.decode("utf-8"))
    except RecursionError:
        raise ValueError(f"{path}: is not JSON: it is too deep") from None
    except ValueError as exc:
        raise ValueError(f"{path}: is not JSON: {exc}") from None
    return loaded
