# SPDX-License-Identifier: BSD-2-Clause
"""Merge a unit with its drop-ins, and find which of its commands a boot carries out as root."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ..core.values import NamedTuple

_SETTING = re.compile(r"[A-Za-z]\w*[ \t]*=.*")
_WITH_COMMANDS = ("Service", "Socket")
_AT_START = ("ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost")
_AT_STOP = ("ExecStop", "ExecStopPost")
RUNS = r"Exec\w+|Standard(?:Output|Error)"
"""Settings that run something, or have systemd open a file to write to."""
_YES = ("1", "yes", "y", "true", "t", "on")
# A service that does no more than this has ended when the boot has, and its stop commands run.
_BRIEF = r"[-@:+!|]*(?:\S*/)?(?:(?:ba|da)?sh|echo|env|logger|modprobe|sysctl|tee|true)\b"
_AS_ROOT = r"[-@:|]*[+!]|.*\bsudo\b"  # The signs of systemd.service(5).
_UNCONFINED = r"[-@:|]*\+"


class Script(str):
    """A text of which something runs at boot, and what is not known of that.

    ``settled`` says that what does not run in a unit is a comment in it.
    ``doubts`` are the numbers of the lines that may not run, 0 for all; ``unread`` are those that
    run what could not be read. ``early`` says that it may run before the files of sysctl.d apply.
    ``written`` is the text of the file, where that has specifiers of systemd.unit(5).
    """

    settled = False
    doubts: frozenset[int] = frozenset()
    unread: frozenset[int] = frozenset()
    early = False
    written = ""


class Setting(NamedTuple):
    """A line of a unit, or several that a backslash joins."""

    path: str
    first: int
    last: int
    section: str
    name: str
    value: str


def mark(text: str, like: str, doubts: Iterable[int] = (), unread: Iterable[int] = ()) -> Script:
    """Return a text of which is known what was known of another, and these lines besides."""
    script = Script(text)
    old = like if isinstance(like, Script) else script
    script.settled, script.early, script.written = old.settled, old.early, old.written
    script.doubts, script.unread = old.doubts.union(doubts), old.unread.union(unread)
    return script


def is_settled(text: str) -> bool:
    """Tell whether a unit holds as comments what does not run in it."""
    return isinstance(text, Script) and text.settled


def list_unread(text: str) -> frozenset[int]:
    """Return the numbers of the lines of a text that run what could not be read."""
    return text.unread if isinstance(text, Script) else frozenset()


def is_early(text: str) -> bool:
    """Tell whether a text may run before the files of sysctl.d apply."""
    return isinstance(text, Script) and text.early


def is_doubtful(text: str, number: int = 0) -> bool:
    """Tell whether a line of a text may not run at boot, or all of it."""
    return isinstance(text, Script) and not text.doubts.isdisjoint((0, number))


def parse_unit(path: str, text: str) -> Iterator[Setting]:
    """Yield what a unit or a drop-in sets, as systemd.syntax(7) has it."""
    return (Setting(path, *one) for one in _parse(str(text)))


@lru_cache(maxsize=16)
def _parse(text: str) -> list[tuple[int, int, str, str, str]]:
    section, held, first = "", "", 0
    found = []
    for number, raw in enumerate(f"{text}\n".split("\n"), 1):
        line = raw.strip()
        if line.startswith(("#", ";")):
            continue
        first = first or number
        if line.endswith("\\"):
            held += f"{line[:-1]} "
            continue
        whole, held = (held + line).strip(), ""
        if whole.startswith("[") and whole.endswith("]"):
            section = whole[1:-1]
        elif _SETTING.fullmatch(whole):
            name, value = whole.split("=", 1)
            found.append((first, number, section, name.strip(), value.strip()))
        first = 0
    return found


def merge(settings: Iterable[Setting], name: str) -> list[Setting]:
    """Return what settings of one name say together: an empty one takes back those before it."""
    found: list[Setting] = []
    for one in settings:
        if one.name == name and one.value:
            found.append(one)
        elif one.name == name:
            found.clear()
    return found


def settle_unit(texts: Mapping[str, str], runs: bool | None = True) -> dict[str, Script]:
    """Return a unit and its drop-ins, those commands made comments that no boot runs as root.

    :param texts: The texts by path, in the order in which systemd reads them.
    :param runs: Whether a boot starts it; ``None`` where that is not known.
    """
    parsed = [one for path, text in texts.items() for one in parse_unit(path, text)]
    settings = [one for one in parsed if one.section in _WITH_COMMANDS]
    sure, unsure = map(set, _find_running(settings)) if runs is not False else (set(), set())
    found = {}
    for path, text in texts.items():
        commands = [one for one in parsed if one.path == path and one.name.startswith("Exec")]
        lines = text.split("\n")
        for one in commands:
            if one not in sure and one not in unsure:
                for at in range(one.first - 1, min(one.last, len(lines))):
                    lines[at] = f"#{lines[at]}"
        doubts = {at for one in unsure for at in range(one.first, one.last + 1) if one.path == path}
        found[path] = mark("\n".join(lines), text, doubts if runs else {0})
        found[path].settled = True
    return found


def _find_running(settings: Sequence[Setting]) -> tuple[list[Setting], list[Setting]]:
    """Return the commands that run as root when the unit is started, and those that may."""
    commands = {name: merge(settings, name) for name in (*_AT_START, *_AT_STOP)}
    sure: list[Setting] = []
    unsure: list[Setting] = []
    for name, found in commands.items():
        runs = has_ended(settings) if name in _AT_STOP else True
        if commands["ExecCondition"] and name != "ExecCondition" and runs:
            runs = None
        for one in found:
            answers = (runs, may_set(settings, one.value))
            if False not in answers:
                (unsure if None in answers else sure).append(one)
    return sure, unsure


def has_ended(settings: Iterable[Setting]) -> bool | None:
    """Tell whether a service has stopped when the boot has ended; ``None``: that is not known."""
    known = [one for one in settings if one.section in _WITH_COMMANDS]
    starts = merge(known, "ExecStart")
    if _find_last(known, "RemainAfterExit").lower() in _YES or not starts:
        return False
    if _find_last(known, "Type") == "oneshot":
        return True
    return None if any(re.match(_BRIEF, one.value) for one in starts) else False


def may_set(settings: Iterable[Setting], command: str) -> bool | None:
    """Tell whether a command of a service may write below /proc/sys; ``None``: not known."""
    last = {one.name: one.value for one in settings}
    is_confined = last.get("ProtectKernelTunables", "").lower() in _YES
    if is_confined and not re.match(_UNCONFINED, command):
        return False
    user = last.get("User", "")
    is_dynamic = user == "" and last.get("DynamicUser", "").lower() in _YES
    if re.match(_AS_ROOT, command) or not (is_dynamic or user not in ("", "root", "0")):
        return True
    if last.get("PermissionsStartOnly", "").lower() in _YES:
        return True
    return None if last.get("AmbientCapabilities") else False


def _find_last(settings: Iterable[Setting], name: str) -> str:
    """Return what a setting says that may be given once, or nothing."""
    return next((one.value for one in reversed(list(settings)) if one.name == name), "")


def list_commands(path: str, text: str, wanted: str = RUNS) -> Iterator[tuple[int, str]]:
    """Yield the lines of a unit that a boot runs, or other settings, with their numbers."""
    settled = text if is_settled(text) else settle_unit({path: text})[path]
    lines = settled.split("\n")
    for one in parse_unit(path, settled):
        if re.fullmatch(wanted, one.name) and one.section in _WITH_COMMANDS:
            for number in range(one.first, min(one.last, len(lines)) + 1):
                if not lines[number - 1].lstrip().startswith(("#", ";")):
                    yield number, lines[number - 1]
