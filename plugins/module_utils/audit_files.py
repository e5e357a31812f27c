# SPDX-License-Identifier: BSD-2-Clause
"""Read the results of many hosts from files, and write reports of them whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .audit_page import PageText
from .fleet import GARBLED, HostResult, read_host
from .fleet_formats import ALONE, FORMAT, VERSION, CsvText, JsonText, JunitText
from .fleet_view import Fleet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, TextIO

    from .fleet_formats import Beside

ENDINGS = {"html": ".html", "json": ".json", "junit": ".xml", "csv": ".csv"}


def read_results(path: Path, now: str) -> Iterator[HostResult]:
    """Yield the hosts of a folder with a file ``HOST.json`` each, or of an audit's document.

    A file that cannot be read is a host whose result is garbled; it is never left out.

    :raises ValueError: If there is nothing to read.
    """
    if path.is_file():
        yield from _list_hosts(load_document(path), now)
        return
    if not path.is_dir():
        raise ValueError(f"{path}: is neither a directory of results nor an audit's document")
    files = sorted(path.glob("*.json"))
    if not files:
        raise ValueError(f"{path}: holds no result; accepted is a file HOST.json for each host")
    for file in files:
        try:
            result: object = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as exc:
            yield HostResult(file.stem, GARBLED, f"{file.name} cannot be read: {exc}")
            continue
        yield read_host(file.stem, result, (), now)


def read_before(path: Path, now: str) -> tuple[Fleet, str]:
    """Return how an earlier run found a fleet, and when that was written.

    :raises ValueError: If it is not the document of an audit.
    """
    if not path.is_file():
        raise ValueError(f"{path}: is not the JSON document of an earlier audit")
    document = load_document(path)
    fleet = Fleet()
    for host in _list_hosts(document, now):
        fleet.add(host)
    return fleet, str(document.get("written") or "")


def load_document(path: Path) -> dict[str, Any]:
    """Return the document that an earlier report wrote.

    :raises ValueError: If it is another file, or of another version.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"{path}: is not JSON: {exc}") from exc
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path}: is not a document of an audit")
    if document.get("version") != VERSION or not isinstance(document.get("hosts"), dict):
        told = document.get("version")
        raise ValueError(f"{path}: is a document of version {told!r}; {VERSION} is accepted")
    return document


def _list_hosts(document: Mapping[str, Any], now: str) -> Iterator[HostResult]:
    for name, entry in document["hosts"].items():
        whole = isinstance(entry, dict) and entry.get("state") == "checked"
        if whole or not isinstance(entry, dict):
            groups = entry.get("groups", ()) if whole else ()
            yield read_host(name, entry, tuple(map(str, groups)), now)
        else:
            yield HostResult(name, str(entry.get("state")), str(entry.get("reason")))


def write_reports(
    hosts: Iterable[HostResult],
    folder: Path,
    stem: str,
    formats: Sequence[str],
    words: Mapping[str, str],
    beside: Beside = ALONE,
) -> tuple[Fleet, list[str]]:
    """Write a report in each format, all of them or none, and return the fleet and their paths.

    :param words: ``title`` of the page and ``written``, the time.
    :raises OSError: If they cannot be written; what was there before is whole then.
    """
    makers: dict[str, Any] = {
        "html": lambda: PageText(words["title"], words["written"], beside),
        "json": lambda: JsonText(words["written"], beside),
        "junit": JunitText,
        "csv": CsvText,
    }
    fleet = Fleet()
    with ExitStack() as stack:
        outputs = {}
        for name in formats:
            path = folder / f"{stem}{ENDINGS[name]}"
            outputs[path] = (makers[name](), stack.enter_context(_open_beside(path)))
        for text, file in outputs.values():
            file.write(text.start())
        for host in hosts:
            fleet.add(host)
            for text, file in outputs.values():
                file.write(text.add(host))
        for text, file in outputs.values():
            file.write(text.finish(fleet))
            file.flush()
            os.fsync(file.fileno())
        for path, output in outputs.items():
            os.replace(output[1].name, path)
    return fleet, [str(path) for path in outputs]


@contextmanager
def _open_beside(path: Path) -> Iterator[TextIO]:
    """Open a new file in the folder of another, which is removed unless it took its name."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        with open(name, "w", encoding="utf-8", errors="backslashreplace") as file:
            os.fchmod(file.fileno(), 0o644)
            yield file
    finally:
        if os.path.exists(name):
            os.unlink(name)
