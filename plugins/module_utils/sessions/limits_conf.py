# SPDX-License-Identifier: BSD-2-Clause
"""Read and write the lines of limits.conf(5), byte for byte where they are not ours.

Text is latin-1 here, so that every byte survives; names in it are UTF-8. Sizes are KiB and cpu
is minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ..core.reader import Limit
from ..core.values import ITEMS, UNLIMITED, NamedTuple

_SPACES = " \t\n\v\f\r"  # isspace(3) in the C locale
_ANY_SPACES, _BLANKS = re.compile(f"[{_SPACES}]+"), re.compile("[ \t]+")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_INFINITE = ("-1", "-", "unlimited", "infinity")


class LimitsLine(NamedTuple):
    """One entry as pam_limits splits it; ``fields`` holds two or four words."""

    path: str
    line: int
    text: str
    fields: tuple[str, ...]

    @property
    def domain(self) -> str:
        return self.fields[0].encode("latin-1").decode("utf-8", "surrogateescape")

    @property
    def types(self) -> tuple[str, ...]:
        """Return the bounds the line sets: soft, hard, both, or none where PAM skips it."""
        kind = self.fields[1].lower()
        return {"soft": ("soft",), "hard": ("hard",), "-": ("soft", "hard")}.get(kind, ())

    @property
    def item(self) -> str:
        return self.fields[2].lower() if len(self.fields) == 4 else ""

    @property
    def stops(self) -> bool:
        """Tell whether this is a two-field line, which cancels every limit of its domain."""
        return len(self.fields) == 2 and self.fields[1].startswith("-")


def parse_limits_conf(text: str, path: str, line_length: int = 0) -> list[LimitsLine]:
    """Return every entry that pam_limits would look at.

    :param line_length: Where PAM's buffer ends a line (1023 up to 1.5.3: what follows is read
        as a line of its own); 0 where lines have no limit.
    """
    found = []
    once: dict[str, str] = {}  # A hundred thousand lines have a few types and items.
    for number, whole in enumerate(text.split("\n"), start=1):
        for piece in _split_long(whole, line_length):
            content = piece.split("\0")[0].split("#")[0]
            fields = _split_fields(content.lstrip(_SPACES), line_length)
            if len(fields) == 2 or len(fields) == 4:
                domain, *names = fields[:3]
                fields = (domain, *(once.setdefault(one, one) for one in names), *fields[3:])
                found.append(LimitsLine(path, number, piece, fields))
    return found


def _split_fields(content: str, line_length: int) -> tuple[str, ...]:
    """Return up to four fields; since 1.6 blanks and tabs alone part them, and the last is the
    rest of the line."""
    if line_length:
        words = _ANY_SPACES.split(content, maxsplit=4)[:4]
    else:
        words = _BLANKS.split(content.rstrip(" \t"), maxsplit=3)
    return tuple(word for word in words if word)


def _split_long(line: str, length: int) -> Iterator[str]:
    if not length:
        yield line
        return
    for start in range(0, len(line), length):
        yield line[start : start + length]


def parse_value(item: str, word: str, nr_open: int = UNLIMITED) -> int | None:
    """Return what pam_limits makes of a value, in the kernel's unit; ``None`` where it skips it.

    Source: ``process_limit()`` in pam_limits.c: ``strtoull(3)``, so trailing garbage is
    ignored (``64k`` is 64, ``0x10`` is 0) and a negative number wraps round.

    :param nr_open: What ``unlimited`` means for nofile.
    """
    known = ITEMS.get(item)
    word = word.lower()
    if known is None or known.resource is None:
        return None
    if word in _INFINITE and item != "nice":
        return nr_open if item == "nofile" else UNLIMITED
    match = _NUMBER.match(word.lstrip(_SPACES))
    if match is None:
        return None
    number = to_integer(match[0])
    if item == "nice":
        return 20 - max(-20, min(19, number))
    number = number % 2**64 if abs(number) < 2**64 else UNLIMITED
    if number < UNLIMITED // known.scale:
        return number * known.scale
    return nr_open if item == "nofile" else UNLIMITED


def parse_setting(item: str, word: str) -> int | str | None:
    """Return what pam_limits makes of an item that is not a resource limit; ``None`` where it skips
    the line.

    Source: ``process_limit()`` in pam_limits.c. A priority is what ``setpriority(2)`` makes of
    it, a number of logins below 0 is unlimited, ``nonewprivs`` is 1 or else 0, and a path for
    ``chroot`` is lower case.
    """
    word = word.encode("latin-1").lower().decode("latin-1")
    if item == "chroot":
        return word.encode("latin-1").decode("utf-8", "surrogateescape")
    if item == "nonewprivs":
        return int(word == "1")
    if item in ("maxlogins", "maxsyslogins") and word in _INFINITE:
        return UNLIMITED
    match = _NUMBER.match(word.lstrip(_SPACES))
    if match is None:
        return None
    number = to_integer(match[0])
    if item == "priority":
        return max(-20, min(19, number))
    return min(number, 2**31 - 1) if number >= 0 else UNLIMITED


def to_integer(text: str) -> int:
    """Read digits; a number too long for any limit stands for "too large", whatever its length."""
    digits = text.lstrip("+-").lstrip("0")
    magnitude = int(digits or "0") if len(digits) <= 20 else 2**64
    return -magnitude if text.startswith("-") else magnitude


def format_limits(domain: str, limits: Mapping[str, Limit]) -> list[str]:
    """Return the lines that give *domain* these limits, without line ends.

    Soft and hard stand on lines of their own: pam_limits drops the hard half of a ``-`` line
    when an earlier, stronger line has set the soft half.

    :raises ValueError: If a size is not a whole number of the file's unit.
    """
    domain = _encode(domain)
    lines = []
    for name, limit in limits.items():
        if limit.text is not None:
            lines.append(f"{domain} - {name} {_encode(limit.text)}")
        elif ITEMS[name].resource is None:
            lines.append(f"{domain} - {name} {_format_value(name, limit.hard)}")
        else:
            lines += [
                f"{domain} {bound} {name} {_format_value(name, value)}"
                for bound, value in (("soft", limit.soft), ("hard", limit.hard))
                if value is not None
            ]
    return lines


def _encode(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _format_value(name: str, value: int | None) -> str:
    if value is None or value >= UNLIMITED:
        return "unlimited"
    if name == "nice":
        return str(20 - value)
    scale = ITEMS[name].scale
    if value % scale:
        unit = "minutes" if name == "cpu" else "KiB"
        raise ValueError(f"{name}: {value} {ITEMS[name].unit} is not a whole number of {unit}")
    return str(value // scale)


def list_nofiles(lines: Iterable[LimitsLine]) -> Iterator[tuple[int, str]]:
    """Yield every nofile that limits files state: above fs.nr_open, PAM may refuse it."""
    for line in lines:
        if line.types and line.item == "nofile":
            value = parse_value("nofile", line.fields[3])
            if value is not None and value < UNLIMITED:
                yield value, f"{line.path}:{line.line}"
