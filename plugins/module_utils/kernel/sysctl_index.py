# SPDX-License-Identifier: BSD-2-Clause
"""Find the lines of sysctl.d(5) that concern a key without a look at all the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .glob_pattern import expand_braces, is_pattern, matches_path
from .sysctl_conf import SysctlLine, simplify

_MOST_PATTERNS = 200_000
_MOST_TESTS = 2_000_000
"""How many patterns, braces expanded, and how often a name is held against one: more than any
host has by far."""


class Index:
    """Lines in the order in which they are read, by the names that they state.

    :raises ValueError: If they hold more patterns than anybody compares.
    """

    def __init__(self, lines: tuple[SysctlLine, ...]) -> None:
        self.lines = lines
        self.spellings = {line.name for line in lines}
        self.patterns = self.whole = Patterns(expands=True)
        if any("{" in line.name for line in lines):
            self.whole = Patterns(expands=False)
        self._simple, self._elsewhere = _Chain(), _Chain()
        self._leads_elsewhere: set[int] = set()
        for number, line in enumerate(lines):
            if line.glob:
                self.patterns.put(number, line)
                if self.whole is not self.patterns:
                    self.whole.put(number, line)
            else:
                name = simplify(line.name)
                self._simple.put(name, number)
                leads_to = resolve_path(line.name)
                if leads_to != name:
                    self._elsewhere.put(leads_to, number)
                    self._leads_elsewhere.add(number)
        self._ranks = _rank_patterns(lines)
        self._is_plain = not self._ranks and not self._leads_elsewhere

    def find_named(self, name: str) -> list[SysctlLine]:
        """Return the lines that name a file."""
        return [self.lines[number] for number in self._simple.list(name)]

    def find_resolved(self, name: str) -> list[int]:
        """Return the numbers of the lines whose path leads to a file."""
        here = [one for one in self._simple.list(name) if one not in self._leads_elsewhere]
        return sorted([*here, *self._elsewhere.list(name)])

    def find_only(self, name: str) -> SysctlLine | None:
        """Return the line that names a file where no other does, and no pattern covers any."""
        number = self._simple.find_only(name) if self._is_plain else None
        return None if number is None else self.lines[number]

    def is_read_like(self, other: Index) -> bool:
        """Tell whether every reader makes the same of both: lines that name one file each, and
        assign a value."""
        return (
            self._is_plain
            and self.lines == other.lines
            and all(line.value is not None for line in self.lines)
        )

    def find_covering(self, name: str) -> list[SysctlLine]:
        """Return the lines whose pattern covers a file."""
        return [self.lines[number] for number in self.patterns.find(name)]

    def find_last_patterns(self, name: str) -> list[SysctlLine]:
        """Return those that cover a file and count: of one spelling the last, at the place of
        the first of those that state the same."""
        last = {line.name: self._ranks[line.name] for line in self.find_covering(name)}
        return [self.lines[number] for _place, number in sorted(last.values())]

    def find_pattern(self, name: str) -> SysctlLine | None:
        """Return the last line that spells a pattern like this."""
        found = self._ranks.get(name)
        return self.lines[found[1]] if found else None


def _rank_patterns(lines: Sequence[SysctlLine]) -> dict[str, tuple[int, int]]:
    """Return the place of each spelling of a pattern, and the number of its last line."""
    ranks: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(lines):
        if line.glob:
            place, old = ranks.get(line.name, (number, number))
            ranks[line.name] = (place if lines[old].value == line.value else number, number)
    return ranks


class _Chain:
    """Numbers by a text, without a list for each text."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._before: dict[int, int] = {}

    def put(self, key: str, number: int) -> None:
        before = self._last.get(key)
        if before is not None:
            self._before[number] = before
        self._last[key] = number

    def find_only(self, key: str) -> int | None:
        """Return the number where there is one alone."""
        number = self._last.get(key)
        return None if number in self._before else number

    def list(self, key: str) -> list[int]:
        """Return the numbers in the order in which they were put."""
        found = []
        number = self._last.get(key)
        while number is not None:
            found.append(number)
            number = self._before.get(number)
        return found[::-1]


class Patterns:
    """Patterns by their plain parts, so that a name meets only those that share them."""

    def __init__(self, expands: bool) -> None:
        self._expands = expands
        self._masks: dict[int, dict[tuple[int, ...], dict[str, list[int]]]] = {}
        self._known: list[str] = []
        self._numbers: list[int] = []
        self._tests = 0
        self._last: tuple[str, list[int]] | None = None

    def put(self, number: int, line: SysctlLine) -> None:
        """Keep the pattern of a line."""
        for choice in expand_braces(line.name) if self._expands else [line.name]:
            if len(self._known) == _MOST_PATTERNS:
                raise ValueError(
                    f"{line.path}:{line.line}: is one pattern more than can be compared"
                )
            parts = simplify(choice).split("/")
            mask = tuple(place for place, part in enumerate(parts) if not is_pattern(part))
            plain = "/".join([parts[place] for place in mask])
            by_mask = self._masks.setdefault(len(parts), {})
            by_mask.setdefault(mask, {}).setdefault(plain, []).append(len(self._known))
            self._known.append("/".join(parts))
            self._numbers.append(number)

    def find(self, name: str) -> list[int]:
        """Return the numbers of the lines whose pattern matches a name.

        :raises ValueError: If too many had to be compared, for this name and those before it.
        """
        if not self._known:
            return []
        if self._last is None or self._last[0] != name:  # Who asks for a name asks twice.
            self._last = (name, sorted({self._numbers[one] for one in self._find(name)}))
        return self._last[1]

    def _find(self, name: str) -> Iterator[int]:
        wanted = name.split("/")
        for mask, known in self._masks.get(len(wanted), {}).items():
            near = known.get("/".join([wanted[place] for place in mask]), ())
            self._tests += 1 + len(near)
            if self._tests > _MOST_TESTS:
                raise ValueError("the files of sysctl.d hold more patterns than can be compared")
            for one in near:
                pattern = self._known[one]
                if all(map(_may_match, pattern.split("/"), wanted)) and matches_path(pattern, name):
                    yield one


def _may_match(pattern: str, text: str) -> bool:
    """Tell at little cost that a part does not match: most differ before the first mark."""
    for place, char in enumerate(pattern):
        if char in "*?[\\":
            return True
        if text[place : place + 1] != char:
            return False
    return len(pattern) == len(text)


def resolve_path(name: str) -> str:
    """Return the file below /proc/sys that a path leads to; a slash ends that of a folder."""
    if ".." not in name:
        return simplify(name) + "/" * name.endswith(("/", "/."))
    parts: list[str] = []
    for part in simplify(name).split("/"):
        if part == "..":
            del parts[-1:]
        else:
            parts.append(part)
    return "/".join(parts) + "/" * name.endswith(("/", "/."))
