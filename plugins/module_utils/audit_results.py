# SPDX-License-Identifier: BSD-2-Clause
"""Read what somebody names as results of hosts: files, folders of them, a stream of them."""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import List, Tuple

from .audit_files import (
    LARGEST_RESULT,
    is_version,
    list_hosts,
    load_json,
    read_head,
    uncompress,
)
from .audit_stream import NO_MEMORY, split_documents
from .core.quote import quote
from .core.reader import PolicyError
from .core.values import NamedTuple
from .fleet import CHECKED, GARBLED, STALE, HostResult, cut_line, is_name, read_host
from .fleet_formats import FORMAT, NOTHING
from .host.policy_file import STDIN
from .result import FORMAT as RESULT
from .result import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    Found = Iterator[Tuple[str, List[HostResult]]]

BEGINNINGS = {
    "html": '<meta name="generator" content="mlhost-limits">',
    "json": f'{{"format": "{FORMAT}"',
    "junit": '<testsuites name="mlhost.limits">',
    "csv": "host,place,item,bound,status,",
}
"""What stands at the beginning of a report of ours, whatever it says."""

STREAM = "standard input"
_PATTERNS = ("*.json", "*.json.gz")
_HEAD = 4096
_MOST_TOLD, _MOST_GARBLED = 100, 10_000
"""Documents of one stream that are garbled and each told, and those after which no more is read."""

_TIME = "%Y-%m-%dT%H:%M:%SZ"


class Clock(NamedTuple):
    """The time here, and the oldest time of a result that still counts, as texts that sort."""

    now: str
    oldest: str = ""
    hours: float = 0.0


def read_clock(hours: float) -> Clock:
    """Return the time, and that of so many hours ago."""
    now = time.time()
    oldest = time.strftime(_TIME, time.gmtime(max(0.0, now - hours * 3600)))
    return Clock(time.strftime(_TIME, time.gmtime(now)), oldest, hours)


def is_ours(path: Path, kind: str) -> bool:
    """Tell whether a file is a report of ours."""
    try:
        return BEGINNINGS[kind] in read_head(path, _HEAD).decode("utf-8", "replace")
    except ValueError:
        return False


def read_folder(path: Path, clock: Clock) -> Iterator[HostResult]:
    """Yield the hosts of a folder with a file for each, or of an audit's document.

    :raises ValueError: If there is nothing to read.
    """
    if path.is_file():
        for host in list_hosts(load_json(path), clock.now, path):
            yield _judge_age(host, clock)
        return
    if not path.is_dir():
        raise ValueError(f"{path}: is neither a directory of results nor an audit's document")
    if not _list_folder(path):
        raise ValueError(f"{path}: holds no result; accepted is a file HOST.json for each host")
    yield from read_hosts([str(path)], clock, [])


def read_hosts(names: Sequence[str], clock: Clock, problems: list[str]) -> Iterator[HostResult]:
    """Yield the hosts of all files, each once; what is wrong with a file is added to the problems.

    What has a problem is yielded as a host that was not checked, so that nobody misses it. What
    says nothing of a host comes last: another file may hold its result.

    :param names: Of files, of folders with a ``HOST.json`` for each host, or ``-``.
    """
    known: dict[str, str] = {}
    waiting: list[tuple[str, HostResult]] = []
    for source, found in _read_all(names, clock):
        for host in found:
            if host.state != CHECKED:
                waiting.append((source, host))
                continue
            if host.name in known:
                told = f"{source}: is of the host {host.name}, and so is {known[host.name]}"
                host = HostResult(host.name, GARBLED, told)
            yield _tell(source, host, known, problems)
    waiting.sort(key=lambda one: (one[1].state != GARBLED, one[1].measured), reverse=True)
    for source, host in waiting:
        if host.state == GARBLED or host.name not in known:
            yield _tell(source, host, known, problems)


def _tell(source: str, host: HostResult, known: dict[str, str], problems: list[str]) -> HostResult:
    """Return a host under a name that no other has, and add what is wrong to the problems.

    :param known: By name, the file that told of it.
    """
    name, number = host.name, 1
    while name in known:
        number += 1
        base = f"{host.name} in {Path(source).name}"
        name = base if number == 2 else f"{base} ({number - 1})"
    known[name] = source
    if host.state == GARBLED and host.reason.startswith(source):
        problems.append(host.reason)
    elif host.state == CHECKED and not host.findings:
        problems.append(f"{source}: has no finding of {host.name}: {NOTHING}")
    return host._replace(name=name)


def refuse_garbage(
    hosts: Iterable[HostResult], problems: list[str], told: str
) -> Iterator[HostResult]:
    """Yield the hosts, one at a time.

    :param told: What was not done, in the end of what is said.
    :raises PolicyError: At the end, if there was a problem with every one.
    """
    count = 0
    for host in hosts:
        count += 1
        yield host
    if len(problems) == count:
        raise PolicyError([*problems, told])


def _read_all(names: Sequence[str], clock: Clock) -> Found:
    """Yield the hosts of each file, with what that is called."""
    for name in names:
        if name == STDIN:
            yield from _read_stream(clock)
            continue
        for path in _list_folder(Path(name)) or [Path(name)]:
            try:
                yield str(path), list(_read_document(load_json(path), path, str(path), clock))
            except ValueError as exc:
                yield str(path), [HostResult(cut_line(_name_by(path)), GARBLED, str(exc))]
            except MemoryError:
                told = f"{path}: {NO_MEMORY}"
                yield str(path), [HostResult(cut_line(_name_by(path)), GARBLED, told)]


def _list_folder(path: Path) -> list[Path]:
    return sorted(file for pattern in _PATTERNS for file in path.glob(pattern) if path.is_dir())


def _name_by(path: Path) -> str:
    """Return the name that a file gives a host which does not say its own."""
    return Path(path.stem).stem if path.name.endswith(".json.gz") else path.stem


def _read_stream(clock: Clock) -> Found:
    """Yield what standard input holds; of much garbage only the first, and how much there was."""
    garbled = number = 0
    try:
        for document in split_documents(uncompress(sys.stdin.buffer), LARGEST_RESULT):
            number += 1
            source, found = _read_part(f"document {number} of {STREAM}", *document, clock)
            is_garbled = found[0].state == GARBLED
            garbled += is_garbled
            if not is_garbled or garbled <= _MOST_TOLD:
                yield source, found
            if garbled >= _MOST_GARBLED:
                yield _garble(f"{garbled} documents are no results; the rest was not read")
                return
    except (EOFError, OSError, zlib.error) as exc:
        yield _garble(f"is not whole: {exc}")
        number += 1
    if garbled > _MOST_TOLD:
        yield _garble(f"{garbled - _MOST_TOLD} more documents are no results")
    if not number:
        yield _garble("holds no result")


def _read_part(
    source: str, document: object, problem: str, clock: Clock
) -> tuple[str, list[HostResult]]:
    """Return the hosts of one document of the stream, at least one."""
    try:
        if problem:
            raise ValueError(f"{source}: {problem}")
        found = list(_read_document(document, None, source, clock))
        return source, found or [HostResult(source, GARBLED, f"{source}: holds no result")]
    except ValueError as exc:
        return source, [HostResult(source, GARBLED, str(exc))]


def _garble(told: str) -> tuple[str, list[HostResult]]:
    return STREAM, [HostResult(STREAM, GARBLED, f"{STREAM}: {told}")]


def _read_document(
    result: object, path: Path | None, source: str, clock: Clock
) -> Iterator[HostResult]:
    """Yield the hosts of one document; one whose time is too long ago is not checked.

    :raises ValueError: If it is not a result.
    """
    if isinstance(result, dict) and result.get("format") == FORMAT:
        found = list_hosts(result, clock.now, Path(source))
    else:
        found = iter([_read_result(result, path, source, clock)])
    for host in found:
        yield _judge_age(host, clock)


def _read_result(result: object, path: Path | None, source: str, clock: Clock) -> HostResult:
    """Return the host that one result is of.

    :raises ValueError: If it is not a result.
    """
    keys = {"findings", "unreachable", "failed"}
    is_result = isinstance(result, dict) and result.get("format", RESULT) == RESULT
    if not isinstance(result, dict) or not is_result or not keys & result.keys():
        raise ValueError(f"{source}: is neither a result of the check nor a report")
    told = result.get("version", VERSION)
    if not is_version(told, VERSION):
        raise ValueError(f"{source}: is a result of version {quote(told)}; {VERSION} is accepted")
    name = _find_name(result.get("host"), path, source)
    host = read_host(name, result, (), clock.now)
    if host.state == GARBLED:
        raise ValueError(f"{source}: {host.reason}")
    return host


def _judge_age(host: HostResult, clock: Clock) -> HostResult:
    if not host.measured or host.measured >= clock.oldest:
        return host
    why = f"was measured at {host.measured}, more than {clock.hours:g} hours ago"
    return HostResult(host.name, STALE, why, host.groups, measured=host.measured)


def _find_name(host: object, path: Path | None, source: str) -> str:
    """Return what a host is called.

    :raises ValueError: If nothing says so, or it could be taken for something else.
    """
    if host in (None, "") and path is not None:
        host = _name_by(path)
    if not isinstance(host, str) or not host:
        raise ValueError(f"{source}: does not say which host it is of")
    if not is_name(host):
        raise ValueError(f"{source}: {quote(host)} is not the name of a host")
    return host
