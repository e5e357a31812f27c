# SPDX-License-Identifier: BSD-2-Clause
"""Read the values of ``Limit*=`` and ``DefaultLimit*=`` as systemd reads them.

Sources: ``rlimit_parse()``, ``parse_size()``, ``parse_time()``, ``safe_atollu_full()`` and
``extract_first_word()`` of systemd. Texts are latin-1, so that every byte survives.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..core.values import ITEMS, RLIMITS, UNLIMITED, Rlimit

LIMIT_KEYS = {f"Limit{name.upper()}": name for name in RLIMITS}
"""The keys of a unit; those of the manager have ``Default`` before them."""

_BLANK = " \t\n\r"
_SPACE = " \t\n\v\f\r"
_COUNT = re.compile(
    r"(?:0[bB]\+?(?P<two>[01]+)|0[oO]\+?(?P<eight>[0-7]+)|\+?0[xX](?P<sixteen>[0-9a-fA-F]+)"
    r"|(?P<octal>\+?0[0-7]*|-0+)|\+?(?P<ten>[1-9][0-9]*))"
)
_BASES = {"two": 2, "eight": 8, "sixteen": 16, "octal": 8, "ten": 10}
_LONGEST = 1000  # Characters of a value.
_SIZE = r"[ \t\n\v\f\r]*\+?([0-9]+)(?:\.([0-9]*))?[ \t\n\r]*"
_SIZE_UNITS = (*"EPTGMKB", "")
_SPAN = r"[\v\f]*(?:\+?([0-9]+)(?:\.([0-9]+))?|\.([0-9]+))"
_MICROSECONDS = {
    unit: factor
    for units, factor in (
        ("seconds second sec s", 10**6),
        ("minutes minute min", 60 * 10**6),
        ("months month M", 2629800 * 10**6),
        ("msec ms", 1000),
        ("m", 60 * 10**6),
        ("hours hour hr h", 3600 * 10**6),
        ("days day d", 86400 * 10**6),
        ("weeks week w", 7 * 86400 * 10**6),
        ("years year y", 31557600 * 10**6),
        ("usec us \xce\xbcs \xc2\xb5s", 1),
    )
    for unit in units.split(" ")
}
"""The first unit that a text starts with counts, so that their order matters."""


@lru_cache(maxsize=64)
def parse_limit_setting(key: str, value: str) -> Rlimit:
    """Read ``LimitNOFILE=1024:4096`` and its like into the kernel's unit.

    :param key: ``LimitX`` of a unit or ``DefaultLimitX`` of system.conf.
    :raises ValueError: For whatever systemd ignores, with what it accepts.
    """
    name = LIMIT_KEYS.get(key[key.startswith("Default") * len("Default") :])
    if name is None:
        raise ValueError(f"{key!r} is not a limit of systemd")
    try:
        if len(value) > _LONGEST:
            raise ValueError  # Before Python 3.11 int() takes the square of a number's length.
        bounds = [_parse_bound(name, part) for part in _split_bounds(value)]
    except ValueError:
        raise ValueError(
            f"{key}={value} is ignored by systemd: accepted is {_accepted(name)}, "
            f"or two of them as soft:hard"
        ) from None
    limit = Rlimit(bounds[0], bounds[-1])
    if limit.soft > limit.hard:
        raise ValueError(f"{key}={value} is ignored by systemd: soft is above hard")
    return limit


def _split_bounds(value: str) -> list[str]:
    """Return one or two bounds; a backslash goes and takes the meaning of what follows it."""
    if "\\" not in value and ":" not in value:
        return [value]
    pieces = re.findall(r"\\.|[^\\]", value, re.DOTALL)
    bounds = [""]
    for piece in pieces:
        if piece == ":":
            bounds.append("")
        else:
            bounds[-1] += piece[-1]
    if len(bounds) == 3 and not bounds[2]:  # A colon may end the two.
        bounds.pop()
    if len(bounds) > 2 or "".join(pieces) != value:
        raise ValueError(value)
    return bounds


def _accepted(name: str) -> str:
    if name in ("cpu", "rttime"):
        return "a time span such as 10min, 'infinity'"
    if ITEMS[name].unit == "bytes":
        return "a number of bytes, with K, M, G, T, P or E, 'infinity'"
    return "a nice level with its sign, 0 to 40" if name == "nice" else "a whole number, 'infinity'"


def _parse_bound(name: str, text: str) -> int:
    if text == "infinity" and name != "nice":
        return UNLIMITED
    if name in ("cpu", "rttime"):
        number = _parse_time(text, "s" if name == "cpu" else "us")
        return number if number == UNLIMITED or name == "rttime" else -(-number // 10**6)
    if ITEMS[name].unit == "bytes":
        number = _parse_size(text)
    else:
        number = _parse_nice(text) if name == "nice" else parse_count(text)
    if number >= UNLIMITED:
        raise ValueError(text)
    return number


def parse_count(text: str) -> int:
    match = _COUNT.fullmatch(text.lstrip(_SPACE))
    if match is None:
        raise ValueError(text)
    base, digits = next((base, match[name]) for name, base in _BASES.items() if match[name])
    return int(digits, base)


def _parse_nice(text: str) -> int:
    """Read a nice level with its sign, or the kernel's own number: 20 less the level."""
    sign = text[:1]
    if sign not in ("+", "-"):
        number = parse_count(text)
    else:
        level = parse_count(text[1:])
        number = 20 - level if sign == "+" else 20 + level
    if not (1 if sign == "+" else 0) <= number <= 40:
        raise ValueError(text)
    return number


def _parse_size(text: str) -> int:
    """Add up numbers of ever smaller units, such as ``1G 500M``."""
    total, rest, units = 0, text, _SIZE_UNITS
    while True:
        match = re.match(_SIZE, rest)
        after = rest[match.end() :] if match else ""
        unit = next((unit for unit in units if after.startswith(unit)), None)
        if match is None or unit is None:
            raise ValueError(text)
        total += _scale_size(int(match[1]), match[2] or "", unit)
        rest, units = after[len(unit) :], units[units.index(unit) + 1 :]
        if not rest:
            return total


def _scale_size(whole: int, digits: str, unit: str) -> int:
    factor = 1024 ** (6 - _SIZE_UNITS.index(unit)) if unit not in ("B", "") else 1
    fraction = float(int(digits or "0"))
    for _digit in digits:
        fraction /= 10
    if int(digits or "0") > UNLIMITED or whole + (fraction > 0) > UNLIMITED // factor:
        raise ValueError(unit)
    return whole * factor + int(fraction * factor)


def _parse_time(text: str, unit: str) -> int:
    """Add up time spans such as ``1min 30s`` in microseconds; *unit* is that of a bare number."""
    rest = text.lstrip(_BLANK)
    if rest.startswith("infinity") and not rest[len("infinity") :].strip(_BLANK):
        return UNLIMITED
    total = 0
    while True:
        match = re.match(_SPAN, rest)
        if match is None or int(match[1] or "0") >= 2**63:
            raise ValueError(text)
        tail = rest[match.end() :]
        spaced = tail.lstrip(_BLANK)
        name = next((name for name in _MICROSECONDS if spaced.startswith(name)), "")
        if not name and spaced and spaced == tail:
            raise ValueError(text)
        total += _scale_time(match, _MICROSECONDS[name or unit])
        rest = spaced[len(name) :].lstrip(_BLANK)
        if total >= UNLIMITED:
            raise ValueError(text)
        if not rest:
            return total


def _scale_time(span: re.Match[str], factor: int) -> int:
    """Return microseconds; each digit of a fraction is cut off at a whole one."""
    whole, digits = int(span[1] or "0"), span[2] or span[3] or ""
    if whole >= UNLIMITED // factor:
        raise ValueError
    parts = (int(digit) * (factor // 10**place) for place, digit in enumerate(digits, 1))
    return int(whole * factor + sum(parts))
