# SPDX-License-Identifier: BSD-2-Clause
"""Tell whether a script sets a sysctl whose name its shell puts together: ``vm.$name=1``.

Plain assignments and loops say what a variable may hold; all else may hold anything.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

from .glob_pattern import matches_stars

_ANY = "\0"  # Stands for a text that nobody can tell.
_PLAIN = r"(?:\"[^\"`\n]*\"|'[^'\n]*'|\\.|[^\s;&|\"'`()\\])*"
_ASSIGNS = rf"(?<![\w$./{{-])(\w+)(\+?)=({_PLAIN})(?=([\s;&|)\]]|$)?)"
_LOOPS = r"(?<![\w$-])for\s+(\w+)\s+in\s+([^;\n]*)"
_GIVEN = (
    r"(?<![\w$-])(?:read|mapfile|readarray|getopts\s+\S+|select)"
    r"((?:\s+-[^\s;&|]+){0,9}(?:\s+\w+)+)|\bprintf\s+-v\s+(\w+)"
)
_COMPUTED = r"\$\([^()]*\)|`[^`]*`|\$\{\w+[^\w}][^{}]*\}|\$(?:[@*#?!0-9-]|\{[@*#?!0-9]\})"
_USED = r"\$(?:(\w+)|\{(\w+)\})"
_CALL = r"\bsysctl\b([^;&|\n]*)"
_INTO = rf"(?:>\|?|\btee\b(?:\s+-\S+)*)\s*({_PLAIN})"
_GOES = r"(?:\b(?:cd|pushd)[ \t]+(?:-\w+[ \t]+)?|WorkingDirectory=)[\"']?/proc"
_OPEN = r"[$`]|[\w.][\"'\\]+[\w.]"
_JOINED = r"\bsysctl\b[^\n]{0,200}?[\w.][\"'\\]{1,9}[\w.]"
_MOST, _DEEPEST, _LONGEST = 32, 4, 4096


def is_joined(text: str) -> bool:
    """Tell whether a text has a word of sysctl(8) of which quotes surround a part."""
    return re.search(_JOINED, text) is not None


def may_name(line: str, key: str, text: str) -> bool:
    """Tell whether a line of a script may set a key that it does not name as one word.

    A line that is too long is taken apart nowhere: whoever asks judges it by other signs.
    """
    if len(line) > _LONGEST or not re.search(_OPEN, line):
        return False
    return any(not whole or _sets(whole, key, text) for whole in _list_meant(line, text))


@lru_cache(maxsize=256)
def _sets(line: str, key: str, text: str) -> bool:
    words = [word for call in re.findall(_CALL, line) for word in call.split()]
    names = (word.partition("=")[0] for word in words if "=" in word)
    if any(_fits(name.replace("/", "."), key) for name in names):
        return True
    parts = f"proc/sys/{key.replace('.', '/')}".split("/")
    goes = _goes(text)
    paths = [f"/{'/'.join(parts)}", *("/".join(parts[at:]) for at in range(1, len(parts)))]
    targets = re.findall(_INTO, line) if ">" in line or "tee" in line else []
    return any(
        _fits(target, path)
        for target in targets
        if target.strip("\"'").startswith("/proc/sys/") or (goes and target[:1] not in "/&")
        for path in paths
    )


@lru_cache(maxsize=16)
def _goes(text: str) -> bool:
    """Tell whether a script goes to a folder of sysctls."""
    return re.search(_GOES, text) is not None


def _fits(word: str, name: str) -> bool:
    """Tell whether the shell may make a name of a word."""
    bare = re.sub(r"[\"'\\]", "", word)
    return matches_stars(bare.split(_ANY), name)


@lru_cache(maxsize=256)
def _list_meant(line: str, text: str) -> tuple[str, ...]:
    """Return what a line may be once the shell has put in what its variables may hold.

    What is too long to be looked at is empty.
    """
    found = _Shell(_find_values(text)).put(line, _DEEPEST)
    return tuple(whole if len(whole) <= _LONGEST else "" for whole in found)


class _Shell:
    """What variables may hold, each resolved once for each depth: they may name one another."""

    def __init__(self, values: Mapping[str, tuple[str, ...]]) -> None:
        self._values = values
        self._resolved: dict[tuple[str, int], tuple[str, ...]] = {}

    def put(self, text: str, depth: int) -> Iterator[str]:
        """Yield a text with each that its variables may hold; what is too long may be anything."""
        if len(text) > _LONGEST:
            yield _ANY
            return
        for _round in range(_DEEPEST):
            text = re.sub(_COMPUTED, _ANY, text)
        names = list(dict.fromkeys(one or other for one, other in re.findall(_USED, text)))
        for put in _choose(names, [self._resolve(name, depth) for name in names]):
            whole = re.sub(_USED, lambda found, put=put: put[found[1] or found[2]], text)  # type: ignore[misc]
            yield whole

    def _resolve(self, name: str, depth: int) -> tuple[str, ...]:
        raw, key = self._values.get(name, ()), (name, depth)
        if not raw or not depth:
            return (_ANY,)
        if key not in self._resolved:
            found = (one for text in raw for one in self.put(text, depth - 1))
            short = dict.fromkeys(one if len(one) <= _LONGEST else _ANY for one in found)
            self._resolved[key] = tuple(short)[: _MOST + 1]
        return self._resolved[key]


def _choose(names: Sequence[str], held: list[tuple[str, ...]]) -> Iterator[dict[str, str]]:
    """Yield what variables may hold together; where that is too much, the last may be anything."""
    count = 1
    for at, found in enumerate(held):
        count *= len(found)
        if count > _MOST:
            held[at:] = [(_ANY,)] * (len(held) - at)
            break
    for chosen in product(*held):
        yield dict(zip(names, chosen))


@lru_cache(maxsize=16)
def _find_values(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return what each variable may hold; none of one that may hold anything."""
    found: dict[str, list[str]] = defaultdict(list)
    unclear: set[str] = set()
    for name, adds, value, end in re.findall(_ASSIGNS, text):
        if adds or (not end and not text.endswith(value)):
            unclear.add(name)
        found[name].append(_strip(value))
    for name, words in re.findall(_LOOPS, text):
        if re.search(r"[$`*?(]", words):
            unclear.add(name)
        found[name] += [_strip(word) for word in re.sub(r"\bdo\b.*", "", words).split()]
    for names, name in re.findall(_GIVEN, text):
        unclear.update((*names.split(), name))
    different = {name: tuple(dict.fromkeys(held)) for name, held in found.items()}
    return {
        name: held for name, held in different.items() if name not in unclear and len(held) <= _MOST
    }


def _strip(value: str) -> str:
    return re.sub(r"[\"'\\]", "", value)
