# SPDX-License-Identifier: BSD-2-Clause
"""Versions of Python packages and the specifiers that pin them, as PEP 440 orders them."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..core.values import NamedTuple

LONGEST = 256
_VERSION = re.compile(
    r"""\s*v?
    (?:(?P<epoch>[0-9]+)!)?
    (?P<release>[0-9]+(?:\.[0-9]+)*)
    (?P<pre>[-_.]?(?P<pre_name>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_number>[0-9]+)?)?
    (?P<post>(?:-(?P<post_bare>[0-9]+))|(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>[0-9]+)?))?
    (?P<dev>[-_.]?dev[-_.]?(?P<dev_number>[0-9]+)?)?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_CLAUSE = re.compile(r"\s*(===|==|!=|<=|>=|~=|<|>)\s*(\S+)\s*")
_RELEASE = re.compile(r"v?([0-9]+!)?[0-9]+(\.[0-9]+)*", re.IGNORECASE | re.ASCII)
_TWO_PARTS = re.compile(r"(v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*)\.[0-9]+", re.IGNORECASE | re.ASCII)
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_ORDER = {"a": 0, "b": 1, "rc": 2}
_LEAST, _MOST = -1, 3
_NEVER = (0, 0)


class Version(NamedTuple):
    """A version; as tuples they compare as PEP 440 says.

    ``release`` has no zeros at its end. ``pre`` is the kind and the number; where there is none
    it sorts after all of them, and before them for what is only a development version. ``post``
    is 0 for none, else the number and one; ``dev`` is negative where there is one.
    """

    epoch: int
    release: tuple[int, ...]
    pre: tuple[int, int]
    post: int
    dev: tuple[int, int]
    local: tuple[tuple[int, int, str], ...] = ()

    @property
    def is_development(self) -> bool:
        return self.dev[0] < 0

    @property
    def is_prerelease(self) -> bool:
        return self.is_development or _LEAST < self.pre[0] < _MOST


def parse_version(text: str) -> Version | None:
    """Return a version; ``None`` for a text that is not one."""
    match = _VERSION.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        return None
    dev = (-1, int(match["dev_number"] or 0)) if match["dev"] else _NEVER
    post = 1 + int(match["post_bare"] or match["post_number"] or 0) if match["post"] else 0
    if match["pre"]:
        name = match["pre_name"].lower()
        pre = (_ORDER[_PRE.get(name, name)], int(match["pre_number"] or 0))
    else:
        pre = (_LEAST, 0) if match["dev"] and not match["post"] else (_MOST, 0)
    release = _strip(tuple(map(int, match["release"].split("."))))
    return Version(int(match["epoch"] or 0), release, pre, post, dev, _read_local(match["local"]))


def _strip(release: tuple[int, ...]) -> tuple[int, ...]:
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    return release


def _read_local(text: str | None) -> tuple[tuple[int, int, str], ...]:
    """Return a local label; numbers sort after words."""
    parts = re.split(r"[-_.]", text.lower()) if text else []
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)


class Clause(NamedTuple):
    """One comparison of a specifier, ``>= 1.2``."""

    operator: str
    text: str


def parse_specifier(text: str) -> list[Clause]:
    """Return the comparisons of a specifier; none for an empty one, which takes all.

    :raises ValueError: If it is not one.
    """
    clauses = []
    for part in text.split(",") if text.strip() else ():
        match = _CLAUSE.fullmatch(part)
        if match is None or len(part) > LONGEST or not _is_sound(Clause(match[1], match[2])):
            raise ValueError(
                f"{part.strip()!r} is not a version specifier; accepted are ==, !=, <=, >=, <, >,"
                " ~= and a version, as in '>=4.40,<5'"
            )
        clauses.append(Clause(match[1], match[2]))
    return clauses


def _is_sound(clause: Clause) -> bool:
    if clause.operator == "===":
        return True
    if clause.text.endswith(".*"):
        return clause.operator in ("==", "!=") and bool(_RELEASE.fullmatch(clause.text[:-2]))
    version = parse_version(clause.text)
    if version is None or clause.operator in ("==", "!="):
        return version is not None
    return not version.local and (clause.operator != "~=" or bool(_TWO_PARTS.match(clause.text)))


def satisfies(version: Version, text: str, clauses: list[Clause]) -> bool:
    """Tell whether an installed version is one of those asked for; pre-releases count as well.

    :param text: The version as it is written, which ``===`` compares.
    """
    return all(_meets(version, text, clause) for clause in clauses)


def _meets(version: Version, text: str, clause: Clause) -> bool:
    if clause.operator == "===":
        return text.strip().lower() == clause.text.lower()
    if clause.text.endswith(".*"):
        return _has_prefix(version, clause.text[:-2]) == (clause.operator == "==")
    wanted = parse_version(clause.text)
    return wanted is not None and _COMPARE[clause.operator](version, wanted, clause.text)


def _has_prefix(version: Version, text: str) -> bool:
    """Tell whether a version begins with a release, ``1.2.*``; zeros at its end count."""
    epoch, _mark, release = text.lower().lstrip("v").rpartition("!")
    parts = tuple(map(int, release.split(".")))
    padded = version.release + (0,) * (len(parts) - len(version.release))
    return version.epoch == int(epoch or 0) and padded[: len(parts)] == parts


def _public(version: Version) -> Version:
    return version._replace(local=())


def _is_equal(version: Version, wanted: Version, _text: str) -> bool:
    return (version if wanted.local else _public(version)) == wanted


def _is_compatible(version: Version, wanted: Version, text: str) -> bool:
    """``~= 1.2.3`` is ``>= 1.2.3, == 1.2.*``."""
    match = _TWO_PARTS.match(text)
    prefix = match[1] if match else text
    return _public(version) >= wanted and _has_prefix(version, prefix)


def _is_below(version: Version, wanted: Version, _text: str) -> bool:
    """``< 1.0`` does not take 1.0's own pre-releases."""
    alike = 4 if wanted.post else 2  # Epoch and release, and what a post-release is one of.
    own = version[:alike] == wanted[:alike]
    return version < wanted and not (own and version.is_prerelease and not wanted.is_prerelease)


def _is_above(version: Version, wanted: Version, _text: str) -> bool:
    """``> 1.0`` takes neither 1.0's own post-releases nor builds of it."""
    later = version.post and version[:3] == wanted[:3] and not wanted.post
    later = later and not wanted.is_development
    return version > wanted and not later and _public(version) != wanted


_COMPARE: dict[str, Callable[[Version, Version, str], bool]] = {
    "==": _is_equal,
    "!=": lambda version, wanted, text: not _is_equal(version, wanted, text),
    "<=": lambda version, wanted, _text: _public(version) <= wanted,
    ">=": lambda version, wanted, _text: _public(version) >= wanted,
    "<": _is_below,
    ">": _is_above,
    "~=": _is_compatible,
}
