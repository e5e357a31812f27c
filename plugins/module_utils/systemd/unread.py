# SPDX-License-Identifier: BSD-2-Clause
"""Find the lines that were meant for systemd and that it does not heed, and say how to mend them.

Source: systemd.syntax(7), systemd.exec(5), systemd-system.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from ..core.systemd_text import split_lines
from ..core.values import (
    ITEMS,
    RLIMITS,
    UNLIMITED,
    Declaration,
    NamedTuple,
    Rlimit,
    format_quantity,
)
from .unit_file import Setting, Source, scan_unit
from .values import parse_limit_setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .model import Files

_LINE = re.compile(r"(#?)[#; \t]*([A-Za-z_-]+)[ \t]*([=: \t])[ \t]*(.*)")
_QUANTITY = re.compile(r"([0-9][0-9_,]{0,39})([eE][0-9]{1,2})? ?([kKmMgGtT]?)(?:i?[bB])?")
_ENDLESS = ("unlimited", "infinity", "infinite", "inf", "max", "-1", "-")
_FACTORS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SYNONYMS = {"openfiles": "nofile", "nfile": "nofile", "maxopenfiles": "nofile"}


class Slip(NamedTuple):
    """A line without effect, as it was meant.

    ``instead`` is how it must read, empty where nobody can tell. ``belongs`` is the section where
    it must stand, and ``header`` the number of the line that misspells that section, or 0.
    """

    at: Declaration
    item: str
    code: str
    reason: str
    instead: str
    belongs: str = ""
    header: int = 0


class Header(NamedTuple):
    """The section that lines stand in, and where it starts."""

    name: str = ""
    line: int = 0


def find_slips(source: Source, section: str, prefix: str = "") -> Iterator[Slip]:
    """Yield the lines of one file that were meant to state a limit and do not.

    :param section: The section in which limits count.
    :param prefix: What every key starts with.
    """
    header = Header()
    for number, line in enumerate(split_lines(source.text), 1):
        if not line:
            continue
        if line.lstrip().startswith("["):
            header = Header(line.strip(" \t\r[]"), number)
            continue
        match = _LINE.fullmatch(line.strip(" \t").rstrip(" \t\r"))
        item = find_item(match[2]) if match else ""
        if match is None or not item:
            continue
        limit = read_meant(item, match[4])
        key = f"{prefix}Limit{item.upper()}"
        instead = f"{key}={format_limit(item, limit)}" if limit else ""
        if instead or match[2] == key:
            at = Declaration(source.path, number, line, instead)
            yield from _judge(Slip(at, item, "", "", instead, section), match, key, header)


def _judge(slip: Slip, match: re.Match[str], key: str, header: Header) -> Iterator[Slip]:
    """Yield the line with what is wrong about it, if anything is."""
    section, comment, equals = slip.belongs, match[1] or match[0][0] == ";", match[3] == "="
    if comment:
        if header.name == section and match[2] == key and equals and slip.instead:
            reason = "it is commented out"
            yield slip._replace(code="unit-line-commented-out", reason=reason, belongs="")
    elif header.name != section:
        misspelled = header.line and header.name.lower().rstrip("s") == section.lower()
        where = f"stands in section [{header.name}]" if header.line else "stands before any section"
        reason = f"it {where}, and belongs in [{section}]"
        line = header.line if misspelled else 0
        yield slip._replace(code="unit-line-misplaced", reason=reason, header=line)
    elif match[2] != key or not equals:
        known = f"the key is {key}" if equals else f"a line is {key}=VALUE"
        reason = f"systemd does not know it: {known}"
        yield slip._replace(code="unit-line-misspelled", reason=reason, belongs="")
    else:
        try:
            parse_limit_setting(key, match[4])
        except ValueError as exc:
            reason = "systemd ignores it: " + str(exc).partition(" is ignored by systemd: ")[2]
            yield slip._replace(code="unit-line-ignored", reason=reason, belongs="")


def find_item(key: str) -> str:
    """Return the limit that a key means; one letter may be wrong, missing or too much."""
    bare = re.sub("[^a-z]", "", key.lower())
    for item in RLIMITS:
        # Nice= is a key of its own, and the other short names are words of their own.
        alone = (item,) if len(item) > 4 else ()
        names = (*alone, f"limit{item}", f"defaultlimit{item}")
        if bare in names or any(bare == f"{name}s" for name in names):
            return item
    rest = re.sub("^(default)?limit", "", bare)
    if rest in _SYNONYMS and rest != bare:
        return _SYNONYMS[rest]
    near = (
        item
        for item in RLIMITS
        for name in (f"limit{item}", f"defaultlimit{item}")
        if len(item) > 3 and _is_near(bare, name)
    )
    return next(near, "")


def _is_near(word: str, other: str) -> bool:
    """Tell whether one letter more, less or else, or two swapped, make a word another."""
    start = 0
    while word[start:] and word[start : start + 1] == other[start : start + 1]:
        start += 1
    a, b = word[start:], other[start:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def read_meant(item: str, text: str) -> Rlimit | None:
    """Return the limit that somebody meant, or nothing where that is not plain."""
    words = re.split(r"[:\s]+|,(?=\s)", text.partition("#")[0].strip(" \t\r;\"'"))
    bounds = [_read_bound(item, word.strip(";,\"'")) for word in words if word]
    known = [bound for bound in bounds if bound is not None]
    if len(known) != len(bounds) or len(known) not in (1, 2):
        return None
    return Rlimit(min(known), max(known))


def _read_bound(item: str, word: str) -> int | None:
    if word.lower() in _ENDLESS:
        return UNLIMITED
    match = _QUANTITY.fullmatch(word)
    if match is None or (match[3] and ITEMS[item].unit == "seconds"):
        return None
    number = int(re.sub("[_,]", "", match[1]) + "0" * int((match[2] or "e0")[1:]))
    return min(number * _FACTORS[match[3].lower()], UNLIMITED)


def format_limit(item: str, limit: Rlimit) -> str:
    """Write a limit as systemd reads it: one value, or ``soft:hard``."""
    bounds = dict.fromkeys(_format_bound(item, value) for value in limit)
    return ":".join(bounds)


def _format_bound(item: str, value: int) -> str:
    if value >= UNLIMITED:
        return "infinity"
    if ITEMS[item].unit == "bytes":
        return format_quantity(value, "bytes").rstrip("iB")
    return str(value)


_MOST = 50  # Lines of one key that are kept: they are shown as what the last one beats.


def leave_out_beaten(files: Files) -> Files:
    """Return the files without what at least 50 later lines beat, line numbers unchanged.

    Causes are found by changing files in thought, and each change has them read anew: without
    those lines a file that states a limit 100,000 times is read as fast as one that does 50 times.
    """
    return files._replace(
        main=files.main and _thin(files.main),
        dropins=tuple(map(_thin, files.dropins)),
        manager=files.manager and _thin(files.manager),
        manager_dropins=tuple(map(_thin, files.manager_dropins)),
    )


@lru_cache(maxsize=16)
def _thin(source: Source) -> Source:
    """Return a file with empty lines for limits that many valid ones of their section follow."""
    settings = scan_unit(source.text, source.path).settings
    later: dict[tuple[str, str], int] = {}
    gone: set[int] = set()
    for one in reversed(settings):
        count = later.get((one.section, one.key), 0)
        if count == _MOST:
            gone.add(one.line)
        elif _is_limit(one):
            later[one.section, one.key] = count + 1
    if not gone:
        return source
    rows = [
        "" if number in gone and not row.endswith("\\") else row
        for number, row in enumerate(split_lines(source.text), 1)
    ]
    return Source(source.path, "\n".join(rows))


def _is_limit(setting: Setting) -> bool:
    try:
        parse_limit_setting(setting.key, setting.value)
    except ValueError:
        return False
    return True
