# SPDX-License-Identifier: BSD-2-Clause
"""Say why a new container of Podman has less than a policy asks, or does not start at all."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from ..containers.policy import SHM, TASKS, ContainerPolicy
from ..core.cause import Cause, Remedy, cite
from ..core.finding import FAIL, PASS, Requirement
from ..core.line_edit import edit_line, refuse
from ..core.report import START
from ..core.values import ITEMS, UNLIMITED, Declaration, NamedTuple, Rlimit, format_quantity
from .containers_conf import (
    DEFAULT_TASKS,
    DROP_INS,
    LIMITS_KEY,
    NO_KEY,
    SHM_KEY,
    TASKS_KEY,
    USERS_MAIN,
    ConfError,
    Defaults,
    Stated,
    Ulimit,
    find_tasks,
    format_entry,
    format_tasks,
    resolve,
)

CODES = {
    "podman-conf-unreadable": "a file of containers.conf cannot be read, and Podman stops at it",
    "podman-conf-line": "a line of containers.conf gives containers something else",
    "podman-list-replaced": "a later file's list of limits leaves out what an earlier one states",
    "podman-key-unknown": "a line means to state it under a key or in a section Podman skips",
    "podman-not-stated": "no file of containers.conf states it",
    "podman-above-nr-open": "the files ask for more than fs.nr_open, so that no container starts",
    "podman-environment": "sessions are told to read another file than containers.conf",
    "podman-above-session": "the files ask for more than the user's session may have",
}
_DEFAULT_SHM = 65536000
_LIMITS_FILE, _SHM_FILE = f"{DROP_INS}/95-limits.conf", f"{DROP_INS}/95-shm.conf"
_TASKS_FILE = f"{DROP_INS}/95-tasks.conf"
_TABLE = "[containers]"


class _Setting(NamedTuple):
    """A key of one value: what is wanted, what Podman gives without it, where it is stated then.

    ``word`` tells a line that means it and is skipped.
    """

    name: str
    wanted: str
    default: str
    word: str
    file: str


class Unread(NamedTuple):
    """A line that Podman skips, with the reason."""

    at: Declaration
    reason: str


class PodmanFacts(NamedTuple):
    """What decides the containers of one user: root, where ``user`` is empty.

    ``session`` are the limits of the session from which a rootless one is started, ``{}`` where
    they are not known; ``way`` is how that session was opened.
    """

    stated: tuple[Stated, ...]
    nr_open: int
    broken: ConfError | None = None
    unread: tuple[Unread, ...] = ()
    user: str = ""
    session: Mapping[str, Rlimit] = {}
    way: str = ""

    @property
    def defaults(self) -> Defaults:
        return resolve(self.stated)


def find_podman_causes(
    wanted: Requirement, facts: PodmanFacts, policy: ContainerPolicy
) -> tuple[Cause, ...]:
    """Return what keeps a new container from what is asked; nothing where the files would do."""
    if facts.broken:
        return (_blame_broken(facts.broken),)
    if wanted.item == START:
        return tuple(_find_stoppers(facts, policy))
    if wanted.item == SHM:
        return _explain_shm(wanted, facts)
    if wanted.item == TASKS:
        return _explain_tasks(wanted, facts)
    return _explain_limit(wanted, facts, policy)


def foresee(wanted: Requirement, facts: PodmanFacts, nr_open: int) -> str:
    """Return whether a new container will meet this under another fs.nr_open; empty if unknown.

    Only what the files state is foretold: what they do not is the caller's.
    """
    if facts.broken:
        return ""
    given = facts.defaults
    starts = not find_stopping(facts._replace(nr_open=nr_open))
    if wanted.item == START:
        return PASS if starts else FAIL
    value = find_given(wanted, given)
    if value is None:
        return ""
    return PASS if wanted.is_met_by(value if starts else 0) else FAIL


def find_given(wanted: Requirement, given: Defaults) -> int | None:
    """Return what the files give a new container; ``None`` where they do not say."""
    if wanted.item == SHM:
        return int(given.shm.value) if given.shm else None
    if wanted.item == TASKS:
        return find_tasks(given.tasks)
    ulimit = given.ulimits.get(wanted.item)
    return wanted.pick(ulimit.limit) if ulimit else None


def _blame_broken(error: ConfError) -> Cause:
    text = f"{cite(error.at)}: {error.reason}" if error.at.text else str(error)
    remedy = Remedy("make it what containers.conf(5) accepts, or take the line out")
    return Cause("podman-conf-unreadable", text, remedy, error.at)


def find_stopping(facts: PodmanFacts) -> dict[str, Ulimit]:
    """Return the entries on account of which no container starts."""
    ceilings = {item: limit.hard for item, limit in facts.session.items()}
    ceilings["nofile"] = min(ceilings.get("nofile", UNLIMITED), facts.nr_open)
    return {
        item: ulimit
        for item, ulimit in sorted(facts.defaults.ulimits.items())
        if ulimit.limit.hard > ceilings.get(item, UNLIMITED)
    }


def _find_stoppers(facts: PodmanFacts, policy: ContainerPolicy) -> list[Cause]:
    """Return why no container starts."""
    causes = []
    for item, ulimit in find_stopping(facts).items():
        asked, name = ulimit.limit.hard, format_quantity(ulimit.limit.hard, ITEMS[item].unit)
        if item == "nofile" and asked > facts.nr_open:
            text = f"{cite(ulimit.at)} asks for more than fs.nr_open, {facts.nr_open}"
            target = policy.choose(item, ulimit.limit, facts.nr_open)
            causes.append(
                Cause("podman-above-nr-open", text, rewrite_entry(ulimit, target), ulimit.at)
            )
        else:
            has = format_quantity(facts.session[item].hard, ITEMS[item].unit)
            text = (
                f"{cite(ulimit.at)} asks for {name}, and a session of {facts.user} through"
                f" {facts.way} may have {has}: only root raises it"
            )
            remedy = Remedy(
                f"give that session {item} {name} (sessions of the policy)", (), "log in again"
            )
            causes.append(Cause("podman-above-session", text, remedy, ulimit.at))
    return causes


def _explain_limit(
    wanted: Requirement, facts: PodmanFacts, policy: ContainerPolicy
) -> tuple[Cause, ...]:
    given, item = facts.defaults, wanted.item
    winner = given.ulimits.get(item)
    earlier = _find_earlier(wanted, facts.stated)
    if winner is not None:
        if wanted.is_met_by(wanted.pick(winner.limit)):
            return ()
        target = policy.choose(item, winner.limit)
        whose = f" (of {facts.user or 'root'}'s own)" if USERS_MAIN in winner.at.path else ""
        text = f"{cite(winner.at)} gives new containers {format_entry(item, winner.limit)}{whose}"
        shadows = tuple(one.at for one in earlier)
        return (Cause("podman-conf-line", text, rewrite_entry(winner, target), winner.at, shadows),)
    most = facts.nr_open if item == "nofile" else UNLIMITED
    target = policy.choose(item, Rlimit(most, most))
    if given.block is not None and earlier:
        text = f"{cite(given.block.at)} replaces the list that states {item}, and leaves it out"
        remedy = insert_entry(format_entry(item, target), given.block.at)
        shadows = tuple(one.at for one in earlier)
        return (Cause("podman-list-replaced", text, remedy, given.block.at, shadows),)
    unread = _find_unread(item, facts.unread) or _find_open_list(facts.unread)
    if unread:
        return (_blame_unread(unread, LIMITS_KEY),)
    at = given.block.at if given.block else None
    text = f"no file of containers.conf states {item}, so that whoever starts a container decides"
    entry = format_entry(item, target)
    return (
        Cause("podman-not-stated", text, insert_entry(entry, at) if at else state_entry(entry)),
    )


def _find_earlier(wanted: Requirement, stated: Sequence[Stated]) -> list[Ulimit]:
    """Return the entries that state enough and lose, the strongest last."""
    return [
        ulimit
        for one in stated[:-1]
        for ulimit in (one.block.ulimits if one.block else ())
        if ulimit.item == wanted.item and wanted.is_met_by(wanted.pick(ulimit.limit))
    ]


def _explain_shm(wanted: Requirement, facts: PodmanFacts) -> tuple[Cause, ...]:
    at = facts.defaults.shm
    size = int(at.value) if at else _DEFAULT_SHM
    if at and wanted.is_met_by(size):
        return ()
    told = f"gives new containers a /dev/shm of {size} bytes: Podman counts by the thousand"
    key = _Setting(SHM_KEY, f'"{wanted.minimum}"', f"{_DEFAULT_SHM}B", "shm", _SHM_FILE)
    return (_blame_setting(key, at, told, facts),)


def _explain_tasks(wanted: Requirement, facts: PodmanFacts) -> tuple[Cause, ...]:
    at, value = facts.defaults.tasks, find_tasks(facts.defaults.tasks)
    if value is None or wanted.is_met_by(value):
        return ()
    number = format_tasks(wanted.minimum or 0)
    told = f"bounds new containers to {value} processes and threads"
    key = _Setting(TASKS_KEY, number, str(DEFAULT_TASKS), "pids", _TASKS_FILE)
    return (_blame_setting(key, at, told, facts),)


def _blame_setting(key: _Setting, at: Declaration | None, told: str, facts: PodmanFacts) -> Cause:
    """Blame the line that states a key, or that none does.

    :param told: What the line at fault does.
    """
    line = f"{key.name} = {key.wanted}"
    if at is None:
        unread = _find_unread(key.word, facts.unread)
        if unread:
            return _blame_unread(unread, key.name)
        text = f"no file of containers.conf states {key.name}, so that Podman gives {key.default}"
        return Cause("podman-not-stated", text, _state_line(line, key.file))
    remedy = Remedy(f"make it {line}")
    if re.match(rf"\s*{key.name}\s*=", at.text, re.IGNORECASE):
        remedy = edit_at(at, f"s/^\\([^=]*=\\).*/\\1 {key.wanted}/", remedy.text)
    return Cause("podman-conf-line", f"{cite(at)} {told}", remedy, at)


def _state_line(line: str, path: str) -> Remedy:
    """State a line in a drop-in of its own, unless that exists by now."""
    script = f"[ ! -e {path} ] && printf '%s\\n' '{_TABLE}' {shlex.quote(line)}"
    script += f" > {path}" + refuse(path, "exists by now: nothing was done.")
    return Remedy(f"state it: {line} in {path}", _make(script, path))


def _find_unread(word: str, unread: Sequence[Unread]) -> Unread | None:
    return next((one for one in unread if word in one.at.text.lower()), None)


def _find_open_list(unread: Sequence[Unread]) -> Unread | None:
    """Return the key of a list that goes on in rows which nobody has read."""
    texts = ((one, one.at.text.lower()) for one in unread)
    return next((one for one, text in texts if "ulimit" in text and "]" not in text), None)


def _blame_unread(one: Unread, key: str) -> Cause:
    text = f"{cite(one.at)} has no effect: {one.reason}"
    name = one.at.text.partition("=")[0].strip().strip("\"'")
    remedy = Remedy(f"state {key} in the section [containers]")
    if NO_KEY in one.reason and "." not in name:
        remedy = edit_at(one.at, f"s/^\\([ \\t]*\\)[^=]*=/\\1{key} =/", f"call it {key}")
    return Cause("podman-key-unknown", text, remedy, one.at)


def rewrite_entry(ulimit: Ulimit, target: Rlimit) -> Remedy:
    old, new = str(ulimit.at.value), format_entry(ulimit.item, target)
    if old not in ulimit.at.text:
        return Remedy(f"make it {new}")
    return edit_at(ulimit.at, f"s/{old}/{new}/".replace("+", "\\+"), f"make it {new}")


def insert_entry(entry: str, at: Declaration) -> Remedy:
    return edit_at(at, f's/\\[\\([^[]*\\)$/["{entry}", \\1/', f"add {entry} to that list")


def edit_at(at: Declaration, script: str, text: str) -> Remedy:
    """Edit a line; a file of a package, as edit_line() has it, and one in a home are a person's."""
    if USERS_MAIN in at.path:
        return Remedy(text)
    return Remedy(text, edit_line(at, script))


def state_entry(entry: str, path: str = _LIMITS_FILE, table: str = _TABLE) -> Remedy:
    """Add a limit to a drop-in for what nobody states, whether another one stands there or not."""
    made = f"printf '%s\\n' '{table}' '{LIMITS_KEY} = [' ']' > {path}"
    script = f"[ -e {path} ] || {made}"
    # Several may be stated one after the other, so that the line is known by how it begins.
    add = ("sed", "-i", f'/^{LIMITS_KEY} = \\[/s/\\[/["{entry}", /', path)
    return Remedy(f"state it: {entry} in {path}", (*_make(script, path), add))


def _make(script: str, path: str) -> tuple[tuple[str, ...], ...]:
    return (("mkdir", "-p", path.rpartition("/")[0]), ("sh", "-c", script))


def tell_environment(at: Declaration) -> str:
    """Say what a line does that has Podman read another file in every session."""
    return f"{cite(at)} has the Podman of a session read {at.value}"


def blame_environment(at: Declaration) -> Cause:
    """Blame a line that has Podman read another file in every session, which no trial has."""
    text = f"{tell_environment(at)}; a trial was started without it"
    remedy = Remedy("take that line out, and state it in /etc/containers/containers.conf.d")
    return Cause("podman-environment", text, remedy, at)
