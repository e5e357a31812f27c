# SPDX-License-Identifier: BSD-2-Clause
"""The command ``report``: make one page of files with results, wherever they come from."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from .audit_files import ENDINGS, read_before, write_reports
from .audit_results import is_ours, read_clock, read_hosts, refuse_garbage
from .core.finding import FAIL
from .core.reader import PolicyError
from .core.report import wrap
from .core.values import NamedTuple
from .fleet import UNCHECKED
from .fleet_formats import ALONE, Beside
from .fleet_options import MAX_AGE
from .fleet_view import summarize

FALLING_SHORT = (FAIL, UNCHECKED)
_ENDING = (signal.SIGHUP, signal.SIGTERM)
_HTML = "html"


class Made(NamedTuple):
    """What was written: its summary, the hosts by status, and what is wrong with the files."""

    lines: list[str]
    counts: Mapping[str, int]
    problems: list[str]


def report(
    names: Sequence[str],
    output: str,
    formats: Sequence[str] | None,
    title: str,
    previous: str | None = None,
    max_age: float = MAX_AGE,
) -> Made:
    """Write the reports of some files, all of them or none.

    A file that is not a result is told, and stands in the reports as a host that was not checked.

    :param output: The page; what has another format lies beside it.
    :param formats: Their names, each alone or with commas; by default as the output's name ends.
    :param previous: The JSON of an earlier report, whose hosts are compared with these.
    :param max_age: Hours after which the result of a host counts as none.
    :raises PolicyError: If a name is wrong, no file is a result, or what is not ours would be
        replaced; nothing is written then.
    :raises OSError: If nothing can be written there.
    """
    path = Path(output)
    if path.is_dir() or output == "-" or (path.exists() and not path.is_file()):
        kind = "a directory" if path.is_dir() else "not a regular file"
        raise PolicyError([f"--output: {path} is {kind}; a file's name is accepted"])
    chosen = _choose_formats(path, formats)
    stem = path.stem if path.suffix in ENDINGS.values() else path.name
    _require_ours(path.parent, stem, chosen)
    clock = read_clock(max_age)
    beside = Beside((), (), *read_before(Path(previous), clock.now)) if previous else ALONE
    problems: list[str] = []
    told = {"title": title, "written": clock.now}
    hosts = refuse_garbage(read_hosts(names, clock, problems), problems, "no report was written")
    with _end_as_errors_do():
        fleet, written = write_reports(hosts, path.parent, stem, chosen, told, beside)
    lines = [one for line in summarize(fleet).splitlines() for one in wrap(line)]
    return Made([*lines, f"written to {', '.join(written)}"], fleet.count_hosts(), problems)


@contextmanager
def _end_as_errors_do() -> Iterator[None]:
    """Have signals end this as an error does, so that what is half written is removed."""

    def leave(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    ours = [one for one in _ENDING if signal.getsignal(one) == signal.SIG_DFL]
    for one in ours:
        signal.signal(one, leave)
    try:
        yield
    finally:
        for one in ours:
            signal.signal(one, signal.SIG_DFL)


def _choose_formats(path: Path, given: Sequence[str] | None) -> list[str]:
    endings = {ending: name for name, ending in ENDINGS.items()}
    if given is None:
        return [endings.get(path.suffix, _HTML)]
    names = list(dict.fromkeys(name for told in given for name in told.split(",")))
    accepted = f"accepted are {', '.join(ENDINGS)}"
    unknown = [
        f"--format: {one!r} is not a format; {accepted}" for one in names if one not in ENDINGS
    ]
    if unknown:
        raise PolicyError(unknown)
    return names


def _require_ours(folder: Path, stem: str, formats: Iterable[str]) -> None:
    """Refuse to replace a file that is not a report.

    :raises PolicyError: With every such file.
    """
    if not folder.is_dir():
        raise PolicyError([f"--output: {folder} is not a directory"])
    paths = {folder / f"{stem}{ENDINGS[name]}": name for name in formats}
    problems = [
        f"{path}: exists and is not a report of mlhost-limits; name another file with --output"
        for path, name in paths.items()
        if path.exists() and not is_ours(path, name)
    ]
    if problems:
        raise PolicyError(problems)
