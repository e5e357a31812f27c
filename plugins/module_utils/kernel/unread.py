# SPDX-License-Identifier: BSD-2-Clause
"""Find the lines that were meant for a sysctl and that count for nothing at boot, and say why."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.cause import cite
from ..core.finding import PASS, Requirement
from ..core.values import Declaration, NamedTuple
from .model import KernelFacts, judge_value, list_boot_files
from .sysctl_conf import SYSCTL_CONF, SYSCTL_DIRECTORIES, order_files, parse_sysctl_conf

LEFT_BEHIND = ("~", ".disabled", ".new", ".off", ".sample", ".swp")
_PACKAGE = (".dpkg-", ".ucf-", ".rpm")
_COMMENT = re.compile(r"[ \t]*[#;][#; \t]*(?P<rest>[a-z][\w./-]*[ \t]*=[ \t]*[^#;]*)")
_COMMAND = re.compile(r"^(?:\S*\bsysctl\s+(?:-\S+\s+)*|export\s+|set\s+)?-?\s*(?:/?proc/sys/)?")
_QUANTITY = re.compile(r"([0-9][0-9_,']{0,39})\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_ENDLESS = ("unlimited", "infinity", "max", "-1")
_MARKS = "\xef\xbb\xbf\ufeff\"' \t\r"  # A byte order mark, as latin-1 and as one; quotes.
_MOST_EDITS = 2


class Unread(NamedTuple):
    """A line that states enough if it counted; its value is as it was meant.

    ``by`` is the file that hides it, where one does.
    ``name`` is how the file must be called, where that is all; ``instead`` how the line must be
    written; with neither, the line must stand elsewhere.
    """

    code: str
    at: Declaration
    reason: str
    name: str = ""
    instead: str = ""
    by: Declaration | None = None


def find_unread(wanted: Requirement, facts: KernelFacts) -> Iterator[Unread]:
    """Yield the lines that would meet a requirement if they counted."""
    for entry in _find_all(wanted, facts):
        value = str(entry.at.value)
        if facts.is_taken(facts.key, value) and judge_value(wanted, value) == PASS:
            yield entry


def _find_all(wanted: Requirement, facts: KernelFacts) -> Iterator[Unread]:
    files = list_boot_files(facts)
    read = order_files(files)
    for path in read:
        yield from _find_skipped(wanted, facts, path)
    yield from _find_misnamed(facts)
    for path in files:
        if path not in read and path != SYSCTL_CONF:
            yield from _find_hidden(facts, path, read)
    if not any(facts.real.get(path) == SYSCTL_CONF for path in read):
        reason = "a boot does not read that file; sysctl --system does"
        yield from _find_stated(facts, SYSCTL_CONF, "sysctl-conf-not-read", reason)
    for path in facts.passing:
        reason = "a boot empties /run, and the file was made after the last one"
        yield from _find_stated(facts, path, "sysctl-run-file-lost", reason)
    for path in read:
        yield from _find_commented(facts, path)


def _find_stated(
    facts: KernelFacts, path: str, code: str, reason: str, name: str = ""
) -> Iterator[Unread]:
    """Yield the last line of a file that assigns the key a value that the kernel takes."""
    text = facts.files.get(path, facts.others.get(path, ""))
    lines = [line for line in parse_sysctl_conf(text, path) if line.key == facts.key]
    for line in lines[-1:]:
        if line.value is not None and facts.is_taken(facts.key, line.value):
            at = line.declaration._replace(value=facts.normalize(line.value))
            yield Unread(code, at, reason, name)


def _find_misnamed(facts: KernelFacts) -> Iterator[Unread]:
    for path in facts.others:
        folder, _slash, name = path.rpartition("/")
        right = _find_name(name)
        if right and not any(f"{other}/{right}" in facts.files for other in SYSCTL_DIRECTORIES):
            reason = "only files named *.conf are read"
            yield from _find_stated(
                facts, path, "sysctl-file-not-read", reason, f"{folder}/{right}"
            )


def _find_name(name: str) -> str:
    """Return the name under which a file would be read; nothing for a leftover."""
    lower = name.lower()
    if lower.endswith(LEFT_BEHIND) or any(mark in lower for mark in _PACKAGE):
        return ""
    stem = re.sub(r"\.(conf.*|[a-z]{1,5})$", "", name.lstrip("."), flags=re.IGNORECASE)
    return f"{stem}.conf"


def _find_hidden(facts: KernelFacts, path: str, read: list[str]) -> Iterator[Unread]:
    name = path.rpartition("/")[2]
    by = next((one for one in read if one.rpartition("/")[2] == name), "")
    if by and facts.files[by] != facts.files[path]:
        empty = not facts.files[by].strip()
        hider = Declaration(by, 0, "an empty file" if empty else "a file of the same name", "")
        for entry in _find_stated(facts, path, "sysctl-file-masked", f"{cite(hider)} hides it"):
            yield entry._replace(by=hider)


def _find_skipped(wanted: Requirement, facts: KernelFacts, path: str) -> Iterator[Unread]:
    """Yield the lines that cannot be understood, or hold what the kernel does not take."""
    text = facts.files[path]
    heeded = {line.line: line for line in parse_sysctl_conf(text, path)}
    for number, raw in enumerate(text.split("\n"), 1):
        if raw.lstrip().startswith(("#", ";")) or not raw.strip():
            continue
        line = heeded.get(number)
        named = line is not None and line.key == facts.key and line.value is not None
        if named and line is not None and facts.is_taken(facts.key, line.value or ""):
            continue
        meant = _find_meant(wanted, facts, raw)
        if meant:
            code = "sysctl-value-refused" if named else "sysctl-line-skipped"
            at = Declaration(path, number, raw.strip(), meant)
            yield Unread(code, at, _describe(named, line is None), "", f"{facts.key} = {meant}")


def _describe(named: bool, ignored: bool) -> str:
    if named:
        return "the kernel refuses that value"
    if ignored:
        return "it has no '=', so that it is skipped"
    return "this kernel has no key of that name"


def _find_meant(wanted: Requirement, facts: KernelFacts, raw: str) -> str:
    """Return the value that a line was meant to give the key, or nothing if it is about others."""
    content = re.sub(r"\s[#;].*$", "", raw).strip(_MARKS)
    mark = next((one for one in ("=", ":") if one in content), None)
    words = content.split(mark, 1) if mark else content.rsplit(None, 1)
    if len(words) != 2 or not _is_meant(_COMMAND.sub("", words[0]).strip(_MARKS), facts):
        return ""
    return _read_meant(wanted, words[1].strip(f"{_MARKS}=:;"))


def _is_meant(name: str, facts: KernelFacts) -> bool:
    plain, key = _plain(name), _plain(facts.key)
    if plain in (key, f"{key}s", _plain(facts.key.rpartition(".")[2])):
        return True
    return name.replace("/", ".") in facts.unknown_keys and _count_edits(plain, key) <= _MOST_EDITS


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _count_edits(one: str, other: str) -> int:
    """Return how many letters must be put in, taken out or changed (Levenshtein)."""
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, 1):
        last, row[0] = row[0], count
        for place, wanted in enumerate(other, 1):
            change = last + (letter != wanted)
            last, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, change)
    return row[-1]


def _read_meant(wanted: Requirement, text: str) -> str:
    """Return a value as it must be written; a unit or a word is what the requirement asks."""
    if wanted.exact is not None:
        return wanted.exact if text.split() == wanted.exact.split() else ""
    quantity = _QUANTITY.fullmatch(text)
    if quantity is None:
        endless = text.lower() in _ENDLESS and wanted.minimum is not None
        return str(wanted.minimum) if endless else ""
    number = int(re.sub("[^0-9]", "", quantity[1]))
    if not quantity[2]:
        return str(number)
    number *= 1024 ** (" kmgt".index(quantity[2].lower()))
    low = wanted.minimum
    return str(number if low is None else min(number, low))


def _find_commented(facts: KernelFacts, path: str) -> Iterator[Unread]:
    for number, raw in enumerate(facts.files[path].split("\n"), 1):
        comment = _COMMENT.fullmatch(raw)
        for line in parse_sysctl_conf(comment["rest"], path) if comment else ():
            if line.key == facts.key and facts.is_taken(facts.key, line.value or ""):
                at = Declaration(path, number, raw.strip(), facts.normalize(line.value or ""))
                instead = f"{facts.key} = {at.value}"
                yield Unread("sysctl-commented-out", at, "it is commented out", "", instead)
