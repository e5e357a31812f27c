# SPDX-License-Identifier: BSD-2-Clause
"""Find the lines that were meant for pam_limits and that it passes over, and say why."""

from __future__ import annotations

from typing import NamedTuple

from .limits_conf import LimitsLine, parse_limits_conf, parse_value
from .pam_limits import LIMITS_D, Dialect
from .rlimit import ITEMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_KINDS = ("soft", "hard", "-")
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
    """Yield the lines that pam_limits passes over.

    :param files: Text of the files that it reads, by path.
    :param others: Text of the other files of limits.d.
    """
    for path, text in files.items():
        yield from _find_skipped(path, text, dialect)
    for path, text in others.items():
        name = _find_name(path)
        for line in parse_limits_conf(text, path, dialect.line_length) if name else ():
            if line.types:
                yield Unread(line, "pam_limits reads files named *.conf alone", name=name)


def _find_name(path: str) -> str:
    """Return the name under which a file would be read; nothing for what an editor left."""
    name = path.rpartition("/")[2]
    if path.startswith(f"{LIMITS_D}/") and not name.endswith(("~", ".bak", ".orig", ".swp")):
        return name.lstrip(".").rpartition(".conf" if ".conf" in name else ".")[0] + ".conf"
    return ""


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
        and (line.item not in ITEMS or parse_value(line.item, line.fields[3]) is not None)
        for line in lines
    )


def _correct(words: list[str]) -> tuple[str, ...]:
    """Return the four fields that somebody meant, or nothing where that is not plain."""
    domain, rest = words[0], [word.lower() for word in words[1:]]
    kinds = [word for word in rest if word in _KINDS] or ["-"]
    items = [word for word in rest if _find_item(word)]
    values = [word for word in rest if word.rstrip("kmgb").isdigit() or word == "unlimited"]
    if len(items) != 1 or len(values) != 1 or not domain or len(words) > 5:
        return ()
    return (domain, kinds[0], _find_item(items[0]), values[0])


def _find_item(word: str) -> str:
    """Return the item that a word means; people also write the plural, or ulimit's long name."""
    for item in ITEMS:
        if word in (item, f"{item}s", f"rlimit_{item}"):
            return item
    return ""


def _describe(words: list[str]) -> str:
    if len(words) == 3:
        return "it has three fields, and four are needed"
    return "it cannot be understood as 'domain soft|hard|- item value'"
