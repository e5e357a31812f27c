# SPDX-License-Identifier: BSD-2-Clause
"""Say what keeps dockerd, or every container, from starting, and how to put it right."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from ..containers.policy import SHM
from ..core.cause import Cause, Remedy
from ..core.json_text import byte_order_mark, find_member, find_members, is_blank
from ..core.line_edit import edit_line
from ..core.quote import one_line
from ..core.values import UNLIMITED, Declaration, Rlimit
from ..kernel.raises import raise_nr_open
from ..kernel.sysctl_conf import LARGEST_NR_OPEN
from .daemon_json import SHM_KEY, ULIMITS_KEY, Problem, read_members, walk_entries
from .flags import declare_flag
from .model import World, find_obstacles
from .problems import is_misspelled
from .remedies import (
    Change,
    choose_limit,
    count_met,
    drop_entry,
    drop_flags,
    drop_key,
    item_of,
    rename_key,
    state,
    state_in_file,
)
from .site import Site

CODES = {
    "docker-dockerd-refuses": "dockerd does not start with a line of daemon.json or a flag",
    "docker-no-container-starts": "dockerd takes the line, and with it no container starts",
    "docker-above-nr-open": "a default nofile is above fs.nr_open, and no container starts",
    "docker-flag-conflict": "a flag and daemon.json state the same key, and dockerd does not start",
}

_SYSCTL_FILE = "/etc/sysctl.d/95-site.conf"
_ANY = Rlimit(UNLIMITED, UNLIMITED)


def blame_obstacle(
    obstacles: Sequence[Problem], world: World, site: Site
) -> tuple[Cause, World | None]:
    """Return the first obstacle as a cause, and the world without it where that is known."""
    first = min(obstacles, key=lambda one: one.stops != "dockerd")
    code = "docker-no-container-starts"
    if first.stops == "dockerd":
        conflict = _is_flag(first) and first.key
        code = "docker-flag-conflict" if conflict else "docker-dockerd-refuses"
    elif first not in find_obstacles(world._replace(nr_open=UNLIMITED)):
        code = "docker-above-nr-open"
    change = _try(first, world, site)
    left = [] if change is None else find_obstacles(change.world)
    if change is None or first in left:
        remedy = Remedy("correct it there")
        return Cause(code, one_line(first.text), remedy, first.at), None
    if any(one.stops == "dockerd" for one in left):  # It would not start yet.
        tools = site.tools._replace(unit="")
        change = _try(first, world, site._replace(tools=tools)) or change
    return Cause(code, one_line(first.text), change.remedy, first.at), change.world


def _is_flag(problem: Problem) -> bool:
    return problem.at is not None and problem.at.text.startswith("--")


def _try(problem: Problem, world: World, site: Site) -> Change | None:
    try:
        return _put_right(problem, world, site)
    except ValueError:  # daemon.json states a key twice, or is not JSON: no edit of it is sure.
        return None


def _put_right(problem: Problem, world: World, site: Site) -> Change | None:
    if _is_flag(problem):
        return _put_flag_right(problem, world, site)
    if problem.entry:
        return _put_entry_right(problem, world, site)
    if problem.key == ULIMITS_KEY:
        return drop_key(problem.key, world, site.tools)
    if problem.key == SHM_KEY:
        limit = choose_limit(SHM, site.policy, _ANY)
        if limit:
            return state_in_file(SHM, limit, world, site.tools)
        return drop_key(problem.key, world, site.tools)
    if problem.key:
        return _put_key_right(problem, world, site)
    return _mend(problem, world, site)


def _put_key_right(problem: Problem, world: World, site: Site) -> Change | None:
    """Take a key out, or spell it right; a value of another type is left to a person."""
    if not is_misspelled(problem.key):
        unknown = "does not know" in problem.text
        return drop_key(problem.key, world, site.tools) if unknown else None
    right = SHM_KEY if "shm" in problem.key.lower() else ULIMITS_KEY
    if find_member(find_members(world.text or "", world.path), right):
        return drop_key(problem.key, world, site.tools)
    return rename_key(problem.key, right, world, site.tools)


def _put_flag_right(problem: Problem, world: World, site: Site) -> Change | None:
    flags = [flag for flag in world.flags if declare_flag(flag)[:3] == problem.at[:3]]  # type: ignore[index]
    if problem.key:
        return _settle(flags[0].name, problem.key, world, site)
    item = item_of(flags[0])
    raised = _raise_nr_open(item, world, site)
    limit = choose_limit(item, site.policy, _ANY)
    if raised or not limit:
        return raised or drop_flags(flags, world, site.tools)
    return state(item, limit, world, site.tools)


def _settle(name: str, key: str, world: World, site: Site) -> Change:
    """Take one of two statements of a key out: the flags, unless they are what the policy asks."""
    same = [flag for flag in world.flags if flag.name == name]
    without = drop_flags(same, world, site.tools)
    if key not in (ULIMITS_KEY, SHM_KEY):
        return without._replace(
            remedy=Remedy(f"{without.remedy.text}, or {key} out of {world.path}")
        )
    alone = drop_key(key, world, site.tools)
    return max((without, alone), key=lambda change: count_met(change.world, site.policy))


def _put_entry_right(problem: Problem, world: World, site: Site) -> Change | None:
    members = read_members(world.text or "", world.path, world.version)
    entries = walk_entries(world.text or "", world.path, members)
    item = next(entry.item for entry in reversed(entries) if entry.key == problem.entry)
    raised = _raise_nr_open(item, world, site)
    limit = choose_limit(item, site.policy, _ANY)
    if raised or not limit:
        return raised or drop_entry(problem.entry, world, site.tools)
    return state_in_file(item, limit, world, site.tools)


def _raise_nr_open(item: str, world: World, site: Site) -> Change | None:
    """Raise fs.nr_open where the policy itself asks for more; dockerd needs no restart."""
    limit = choose_limit(item, site.policy, _ANY) if item == "nofile" else None
    if limit is None or not world.nr_open < limit.hard <= LARGEST_NR_OPEN:
        return None
    remedy = raise_nr_open(limit.hard, site.nr_open_at_boot, site.nr_open_line)
    return Change(remedy, world._replace(nr_open=limit.hard))


def _mend(problem: Problem, world: World, site: Site) -> Change | None:
    """Put the form of daemon.json right, where what was meant is plain."""
    text, path = world.text or "", world.path
    if is_blank(text):
        empty = f"grep -q '[^[:space:]]' {shlex.quote(path)}"
        told = f"{path} is no longer empty: nothing was done; run the check again"
        refuse = f"if {empty}; then echo {shlex.quote(told)} >&2; false; else"
        write = ("sh", "-c", f"{refuse} echo '{{}}' > {shlex.quote(path)}; fi")
        return _mended("write {} there", (write,), "{}", world, site)
    mark = byte_order_mark(text)
    if mark and "byte order mark" in problem.text:
        first = _declare_row(1, text, path)
        edit = edit_line(first, "s/^\\xEF\\xBB\\xBF//")
        return _mended("take that mark out", edit, text[len(mark) :], world, site)
    line = problem.at.line if problem.at else 0
    for number, edited, script, said in _try_commas(text.split("\n"), line):
        mended = "\n".join(edited)
        try:
            find_members(mended, path)
        except ValueError:
            continue
        edit = edit_line(_declare_row(number, text, path), script)
        return _mended(f"{said} line {number}", edit, mended, world, site)
    return None


def _declare_row(number: int, text: str, path: str) -> Declaration:
    """Return a line of daemon.json, whose text is UTF-8, as the bytes that it has."""
    row = text.split("\n")[number - 1].encode("utf-8", "surrogateescape").decode("latin-1")
    return Declaration(path, number, row, "")


def _mended(
    said: str, commands: tuple[tuple[str, ...], ...], text: str, world: World, site: Site
) -> Change:
    return Change(site.tools.restart(said, commands), world._replace(text=text))


def _try_commas(lines: list[str], line: int) -> Iterator[tuple[int, list[str], str, str]]:
    """Yield the lines with a comma less or more, at the end of the line at fault or before."""
    before = [at for at in range(min(line, len(lines))) if lines[at].strip()]
    for at in reversed(before[-2:]):
        bare = lines[at].rstrip()
        for edited, script, said in (
            (re.sub(",$", "", bare), "s/,[[:space:]]*$//", "take the comma off the end of"),
            (f"{bare},", "s/[[:space:]]*$/,/", "put a comma at the end of"),
        ):
            yield at + 1, [*lines[:at], edited, *lines[at + 1 :]], script, said
