# SPDX-License-Identifier: BSD-2-Clause
"""Read the results of many hosts from files, and write reports of them whole or not at all."""

from __future__ import annotations

import os
import stat
import zlib
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from .audit_page import PageText
from .audit_stream import DECODER, NO_MEMORY, say_trouble
from .core.quote import quote
from .fleet import CHECKED, GARBLED, STATES, HostResult, is_name, read_host
from .fleet_formats import ALONE, FORMAT, VERSION, CsvText, JsonText, JunitText
from .fleet_shape import ENTRY, choose, find_misfit
from .fleet_view import Fleet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO, TextIO

    from .fleet_formats import Beside

_LARGEST = 256 * 2**20
LARGEST_RESULT = 16 * 2**20
"""Bytes of one host's result; to read garbage of that size takes less than 1 GiB."""

_ENTRY = {"state": choose(*STATES), **ENTRY}
_MOST_MEMORY = 1536 * 2**20
_WEIGHTS = {b"{": 240, b"[": 240, b",": 64, b":": 48}
"""Bytes that a document of an audit may take once it is read, and what a value of it does."""

_GZIP = b"\x1f\x8b"
_HEAD = 64
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
ENDINGS = {"html": ".html", "json": ".json", "junit": ".xml", "csv": ".csv"}


def read_before(path: Path, now: str) -> tuple[Fleet, str]:
    """Return how an earlier run found a fleet, and when that was written.

    :raises ValueError: If it is not the document of an audit.
    """
    if not path.is_file():
        raise ValueError(f"{path}: is not the JSON document of an earlier audit")
    document = load_json(path)
    fleet = Fleet()
    for host in list_hosts(document, now, path):
        fleet.add(host)
    written = document.get("written") if isinstance(document, dict) else ""
    return fleet, str(written or "")


def list_hosts(document: object, now: str, path: Path) -> Iterator[HostResult]:
    """Yield the hosts of the document that an earlier report wrote.

    :raises ValueError: If it is another file, or of another version.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path}: is not a document of an audit")
    told = document.get("version")
    if not is_version(told, VERSION):
        raise ValueError(f"{path}: is a document of version {quote(told)}; {VERSION} is accepted")
    hosts = document.get("hosts")
    if not isinstance(hosts, dict):
        raise ValueError(f"{path}: hosts: is {quote(hosts)}; a mapping is accepted")
    for number, (name, entry) in enumerate(hosts.items(), 1):
        if is_name(name):
            yield _read_entry(name, entry, now, path)
        else:
            told = f"{path}: hosts: {quote(name)} is not the name of a host"
            yield HostResult(f"host {number} of {path.name}", GARBLED, told)


def _read_entry(name: str, entry: object, now: str, path: Path) -> HostResult:
    """Return a host as an earlier report told of it."""
    known = entry if isinstance(entry, dict) else {}
    state = known.get("state")
    problem = find_misfit(known, _ENTRY)
    if problem:
        found = HostResult(name, GARBLED, problem)
    elif state in (None, CHECKED):
        found = read_host(name, entry, tuple(known.get("groups", ())), now)
    else:
        return HostResult(name, state, known.get("reason", ""), tuple(known.get("groups", ())))
    told = f"{path}: hosts.{name}: {found.reason}"
    return found._replace(reason=told) if found.state == GARBLED else found


def is_version(told: object, accepted: int) -> bool:
    """Tell whether a version is the one that is accepted, and not a number that is equal to it."""
    return isinstance(told, int) and not isinstance(told, bool) and told == accepted


def read_head(path: Path, most: int) -> bytes:
    """Return how a file begins; what is not a regular file is neither waited for nor read.

    :raises ValueError: If it cannot be read.
    """
    with _open_regular(path) as file:
        return file.read(most)


@contextmanager
def _open_regular(path: Path, accepted: str = "") -> Iterator[BinaryIO]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ValueError(f"{path}: is not a regular file{accepted}")
            yield file
    except OSError as exc:
        raise ValueError(f"{path}: {exc.strerror or exc}") from None


def read_text(path: Path) -> str:
    """Return what a small file holds.

    :raises ValueError: If it cannot be read, is not text, or is larger than it may be.
    """
    content = read_head(path, LARGEST_RESULT + 1)
    if len(content) > LARGEST_RESULT:
        raise ValueError(f"{path}: is larger than {LARGEST_RESULT // 2**20} MiB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ValueError(f"{path}: is not text: {exc.reason}") from None


def load_json(path: Path) -> object:
    """Return what a file holds, which may be compressed by gzip.

    :raises ValueError: If it cannot be read, is not JSON, or is larger than it may be.
    """
    try:
        return _parse(path, _read_whole(path))
    except MemoryError:
        raise ValueError(f"{path}: {NO_MEMORY}") from None


def _parse(path: Path, text: str) -> object:
    try:
        loaded: object = DECODER.decode(text)
    except (RecursionError, ValueError) as exc:
        raise ValueError(f"{path}: is not JSON: {say_trouble(exc)}") from None
    return loaded


def _read_whole(path: Path) -> str:
    """Return the text of a file that does not become too large as it is parsed."""
    with _open_regular(path, ", and holds no HOST.json") as raw:
        content = _read_bounded(path, uncompress(raw))
    size = len(content) * (2 if content.isascii() else 5)
    size += sum(weight * content.count(sign) for sign, weight in _WEIGHTS.items())
    if len(content) > LARGEST_RESULT and size > _MOST_MEMORY:
        raise ValueError(f"{path}: would take more than {_MOST_MEMORY // 2**20} MiB of memory")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ValueError(f"{path}: is not JSON: {exc}") from None


def _read_bounded(path: Path, file: BinaryIO) -> bytes:
    try:
        head = file.read(_HEAD)
        most = _LARGEST if FORMAT.encode() in head else LARGEST_RESULT
        content = head + file.read(most + 1 - len(head))
    except (EOFError, zlib.error) as exc:
        raise ValueError(f"{path}: is not whole: {exc}") from None
    if len(content) > most:
        raise ValueError(f"{path}: is larger than {most // 2**20} MiB")
    return content


def uncompress(file: BinaryIO) -> BinaryIO:
    """Return what a file holds, also where gzip compressed it; it need not be one to seek in."""
    beginning = file.peek(len(_GZIP))  # type: ignore[attr-defined]
    if not beginning.startswith(_GZIP):
        return file
    import gzip  # Few results need it.

    return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]


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
        paths = [folder / f"{stem}{ENDINGS[name]}" for name in formats]
        opened = [stack.enter_context(open_beside(path)) for path in paths]
        outputs = [(makers[name](), file) for name, (file, _take) in zip(formats, opened)]
        for text, file in outputs:
            file.write(text.start())
        for host in hosts:
            fleet.add(host)
            for text, file in outputs:
                file.write(text.add(host))
        for text, file in outputs:
            file.write(text.finish(fleet))
            file.flush()
            os.fsync(file.fileno())
        for _file, take_name in opened:
            take_name()
    return fleet, [str(path) for path in paths]


@contextmanager
def open_beside(path: Path) -> Iterator[tuple[TextIO, Callable[[], None]]]:
    """Open a new file in the folder of another, with what gives it the other's name and mode.

    It is removed unless it took that name. All goes by the open folder: who may write there may
    exchange the names, and so gets no file but their own written.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        name = f".{path.name[:64]}.{os.urandom(8).hex()}"
        try:
            handle = os.open(name, _CREATE, 0o666, dir_fd=folder)
        except OSError as exc:
            raise OSError(exc.errno, exc.strerror, str(path)) from None
        try:
            with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                _keep_mode(handle, path.name, folder)
                yield file, partial(os.replace, name, path.name, **_both(folder))
        except OSError as exc:
            if exc.filename or exc.errno is None:
                raise
            # A disk that is full does not say which file it has no room for.
            raise OSError(exc.errno, exc.strerror, str(path)) from None
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


def _both(folder: int) -> dict[str, int]:
    return {"src_dir_fd": folder, "dst_dir_fd": folder}


def _keep_mode(handle: int, name: str, folder: int) -> None:
    """Give a file the mode of the one that it replaces, if that is a plain one."""
    with suppress(FileNotFoundError):
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(old.st_mode):
            os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
