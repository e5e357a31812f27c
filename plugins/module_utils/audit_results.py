# SPDX-License-Identifier: BSD-2-Clause
"""Read files that somebody names as results of hosts; what is not a result is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from .audit_files import list_hosts, load_json, read_head
from .fleet import CHECKED, GARBLED, HostResult, read_host
from .fleet_formats import FORMAT, NOTHING

BEGINNINGS = {
    "html": '<meta name="generator" content="mlhost-limits">',
    "json": f'{{"format": "{FORMAT}"',
    "junit": '<testsuites name="mlhost.limits">',
    "csv": "host,place,item,bound,status,",
}
"""What stands at the beginning of a report of ours, whatever it says."""

_HEAD = 4096


def is_ours(path: Path, kind: str) -> bool:
    """Tell whether a file is a report of ours."""
    try:
        return BEGINNINGS[kind] in read_head(path, _HEAD).decode("utf-8", "replace")
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
            if host.state == CHECKED and not host.findings:
                problems.append(f"{path}: has no finding of {host.name}: {NOTHING}")
            yield host


def _list_files(names: Sequence[str]) -> Iterator[Path]:
    for path in map(Path, names):
        files = sorted(path.glob("*.json")) if path.is_dir() else []
        yield from files or [path]


def _read_file(path: Path, now: str) -> Iterator[HostResult]:
    """Yield the hosts of one file.

    :raises ValueError: If it is not a result.
    """
    result = load_json(path)
    if isinstance(result, dict) and result.get("format") == FORMAT:
        yield from list_hosts(result, now, path)
        return
    keys = {"findings", "unreachable", "failed"}
    if not isinstance(result, dict) or not keys & result.keys():
        raise ValueError(f"{path}: is neither a result of the check nor a report")
    host = result.get("host")
    found = read_host(host if isinstance(host, str) and host else path.stem, result, (), now)
    if found.state == GARBLED:
        raise ValueError(f"{path}: {found.reason}")
    yield found
