# SPDX-License-Identifier: BSD-2-Clause
"""Find the lines that were meant for pam_limits and that it skips, and say why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..core.distribution import Dialect
from ..core.values import ITEMS, NamedTuple
from .limits_conf import LimitsLine, parse_limits_conf, parse_setting, parse_value

_KINDS = ("soft", "hard", "-")
_ENDLESS = ("unlimited", "infinity", "max", "infinite", "none")
_NUMBER = r"(@?)([0-9]+)"
_MARKS = "\xef\xbb\xbf\ufeff\"'"  # A byte order mark, as latin-1 and as one; quotes.


class Unread(NamedTuple):
    """A line that has no effect, as it was meant, with the reason.

    ``instead`` is how the line must be written; it is empty where the file is what is wrong, and
    ``name`` is then how the file must be called.
    """

    line: LimitsLine
    reason: str
    instead: str = ""
    name: str = ""


def find_unread(
    files: Mapping[str, str], others: Mapping[str, str], dialect: Dialect
) -> Iterator[Unread]:
    """Yield the lines that pam_limits skips.

    :param files: Text of the files that it reads, by path.
    :param others: Text of the other files of limits.d.
    """
    for path, text in files.items():
        yield from _find_skipped(path, text, dialect)
    for path, text in others.items():
        for line in parse_limits_conf(text, path, dialect.line_length):
            if line.types:
                reason = "pam_limits reads files named *.conf alone"
                yield Unread(line, reason, name=_find_name(path))


def _find_name(path: str) -> str:
    """Return the name under which a file of limits.d would be read."""
    name = path.rpartition("/")[2].lstrip(".")
    stem = name.rpartition(".")[0] or name
    return (stem[: -len(".conf")] if stem.endswith(".conf") else stem) + ".conf"


def _find_skipped(path: str, text: str, dialect: Dialect) -> Iterator[Unread]:
    for number, whole in enumerate(text.split("\n"), 1):
        content = whole.partition("#")[0]
        words = content.replace("=", " ").replace(",", " ").split()
        if len(words) < 3 or _is_understood(whole, path, dialect):
            continue
        fields = _correct([word.strip(_MARKS) for word in words])
        if fields:
            line = LimitsLine(path, number, whole, fields)
            yield Unread(line, _describe(words), " ".join(fields))


def _is_understood(whole: str, path: str, dialect: Dialect) -> bool:
    lines = parse_limits_conf(whole, path, dialect.line_length)
    return any(
        line.types
        and len(line.fields) == 4
        and not line.domain.startswith(("\ufeff", '"'))
        and not re.fullmatch(_NUMBER, line.domain)
        and _has_value(line)
        for line in lines
    )


def _has_value(line: LimitsLine) -> bool:
    """Tell whether pam_limits heeds an item, or nobody can say what was meant by it."""
    if line.item not in ITEMS:
        return not _find_item(line.item)
    read = parse_setting if ITEMS[line.item].resource is None else parse_value
    return read(line.item, line.fields[3]) is not None


def _correct(words: list[str]) -> tuple[str, ...]:
    """Return the four fields that somebody meant, or nothing where that is not plain."""
    domain, rest = words[0], [word.lower() for word in words[1:]]
    kinds = [word for word in rest if word in _KINDS] or ["-"]
    items = [word for word in rest if _find_item(word)]
    values = [word for word in rest if word.rstrip("kmgb").isdigit() or word in _ENDLESS]
    if len(items) != 1 or len(values) != 1 or not domain or len(words) > 5:
        return ()
    number = re.fullmatch(_NUMBER, domain)
    domain = f"{number[1]}:{number[2]}" if number else domain
    value = "unlimited" if values[0] in _ENDLESS else values[0]
    return (domain, kinds[0], _find_item(items[0]), value)


def _find_item(word: str) -> str:
    """Return the item that a word means; people also write the plural, or ulimit's long name."""
    for item in ITEMS:
        if word in (item, f"{item}s", f"rlimit_{item}"):
            return item
    return ""


def _describe(words: list[str]) -> str:
    if re.fullmatch(_NUMBER, words[0]):
        return "a number is a name there; one with a colon before it is an id"
    if len(words) == 3:
        return "it has three fields; four are needed"
    return "it cannot be understood as 'domain soft|hard|- item value'"
