# SPDX-License-Identifier: BSD-2-Clause
"""The verb ``heal``: raise what runs to what a policy owes it, without a restart."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from .core.fields import parse_fields
from .core.policy import Policy
from .core.report import wrap
from .core.values import NamedTuple
from .heal.living_read import (
    Living,
    choose_container,
    choose_job,
    choose_process,
    choose_unit,
    choose_user,
    read_living,
)
from .heal.owed import CONTAINER, Owed, find_owed
from .heal.raises import LIMIT, SHM, SYSCTL, TASKS, Change, find_short, fold, plan_limits
from .heal.settle import keep_record, read_now, read_record, set_value, shares_shm
from .host.look import may_raise_limits, read_limits
from .kernel.plan import plan_writes
from .kernel.read import read_sysctl
from .shared_memory.model import SHM as SHM_PATH
from .shared_memory.read import read_shm_size
from .systemd.tasks_read import read_levels
from .training.shm_read import find_folder, read_size
from .write.lock import only_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from .heal.living_read import Choose

FORMAT, VERSION = "mlhost.limits/heal", 1
"""Of what ``heal --json`` prints; keys may be added without a new version."""

_MARGIN, _MOST_NAMED = 9, 3
_NEVER_LOWERED = ("fs.nr_open", "fs.file-max")
_CHOOSERS = (
    ("pid", choose_process),
    ("user", choose_user),
    ("unit", choose_unit),
    ("container", choose_container),
    ("job", choose_job),
)


class Healed(NamedTuple):
    """What was raised, or would be, what is still short, and what failed.

    ``chosen`` counts the processes that were looked at.
    """

    changes: Sequence[Change] = ()
    short: Sequence[str] = ()
    problems: Sequence[str] = ()
    chosen: int = 0
    is_check: bool = False
    is_undo: bool = False

    @property
    def lines(self) -> list[str]:
        """What happened, for people, at most 80 columns wide."""
        mark = "would raise" if self.is_check else "put back" if self.is_undo else "raised"
        lines = [line for told in self.as_texts() for line in _tell(mark, told)]
        for mark_, texts in (("short", self.short), ("failed", self.problems)):
            for told in dict.fromkeys(texts):
                lines += _tell(mark_, told)
        if lines:
            return lines
        if self.is_undo:
            return ["nothing to put back: nothing that was raised since the boot still runs"]
        return ["nothing to raise: what runs there has what the policy asks for it"]

    def as_texts(self) -> tuple[str, ...]:
        """Each change once, with whom it concerns."""
        return tuple(f"{text.strip()}{_name_all(each)}" for text, each in fold(self.changes))

    def list_all(self) -> list[str]:
        """Every change on a line of its own."""
        whole = [f"{one.who or one.place.rstrip(':')}: {one.text}" for one in self.changes]
        return [line for told in whole for line in _tell("", told)]

    def as_dict(self) -> dict[str, object]:
        """The same as plain data, for JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "check": self.is_check,
            "undo": self.is_undo,
            "processes": self.chosen,
            "changes": [one._asdict() for one in self.changes],
            "short": list(self.short),
            "problems": list(self.problems),
        }


def _tell(mark: str, text: str) -> list[str]:
    start = f"{mark:<{_MARGIN - 1}} " if len(mark) < _MARGIN else f"{mark} "
    return wrap(text, start, " " * len(start))


def _name_all(changes: Sequence[Change]) -> str:
    named = [one.who for one in changes if one.who]
    if not named:
        return ""
    more = len(named) - _MOST_NAMED
    shown = ", ".join(named[:_MOST_NAMED])
    return f" ({shown}{f' and {more} more' if more > 0 else ''})"


def heal(policy: Policy, arguments: argparse.Namespace) -> Healed:
    """Raise what was chosen.

    :raises OSError: If it is another user's, or nothing can be kept of it: nothing is raised then.
    :raises ValueError: If nothing was chosen, or the policy asks nothing of it.
    """
    choose = _read_choice(arguments)
    if os.geteuid() or arguments.check:
        return _heal(policy, choose, arguments.check)
    with only_run():
        return _heal(policy, choose, False)


def heal_all(policy: Policy, is_check: bool) -> Healed:
    """Raise all that runs in a place that the policy asks something of; the caller has the lock.

    :raises OSError: If nothing can be kept of it: nothing is raised then.
    """
    return _heal(policy, lambda _one: True, is_check)


def undo() -> Healed:
    """Put back what was raised since the boot and still has that value.

    :raises PermissionError: If the caller is not root, of whom alone a record is kept.
    """
    if os.geteuid():
        raise PermissionError("--undo: only root's changes are recorded; run it as root")
    with only_run():
        done, kept, told, failed = [], [], [], []
        for one in reversed(read_record()):
            now = read_now(one)
            if now is None or now == one.before:
                continue
            reason = _find_reason_to_stay(one, now) or set_value(one, one.before)
            if not reason:
                done.append(one._replace(before=one.after, after=one.before))
            elif now == one.after and one.item not in _NEVER_LOWERED:
                kept.append(one)
                failed.append(f"{one.place} {one.who} {one.item}: {reason}")
            else:
                told.append(f"{one.place} {one.who} {one.item}: {reason}")
        keep_record(kept[::-1])
    return Healed(done, told, failed, len(done), is_undo=True)


def _find_reason_to_stay(one: Change, now: Sequence[int]) -> str:
    if tuple(now) != one.after:
        return f"is {one.format(now)} by now, which is not what was set, and stays so"
    if one.item in _NEVER_LOWERED:
        return "stays: logins that count on it would be refused"
    return ""


def _read_choice(arguments: argparse.Namespace) -> Choose:
    asked = [
        (choose, getattr(arguments, name))
        for name, choose in _CHOOSERS
        if getattr(arguments, name) is not None
    ]
    if len(asked) + arguments.all != 1:
        raise ValueError("give one of --pid, --user, --unit, --container, --job, --all")
    if not asked:
        own = os.geteuid()
        return lambda one: own in (0, one.user.uid)
    choose, value = asked[0]
    chosen: Choose = choose(value)
    return chosen


def _heal(policy: Policy, choose: Choose, is_check: bool) -> Healed:
    seen = [one for one in read_living() if choose(one)]
    if not seen:
        raise ValueError("nothing of it runs here in a place that can be proved")
    owed = [(one, _find_owed(policy, one)) for one in seen]
    if not any(any(each) for _one, each in owed) and not policy.get("kernel"):
        places = ", ".join(sorted({one.home.place for one in seen})[:_MOST_NAMED])
        raise ValueError(f"the policy asks nothing of {places}")
    sysctls = list(_plan_kernel(policy)) if os.geteuid() == 0 else []
    nr_open = max([int(read_sysctl("fs.nr_open") or 0), *_find_nr_open(sysctls)])
    changes = [*sysctls, *_plan_processes(owed, nr_open), *_plan_places(owed)]
    if is_check:
        return Healed(changes, list(_find_left(owed, changes)), (), len(seen), True)
    kept = read_record() if os.geteuid() == 0 else []
    earlier = [
        one for one in kept if read_now(one) is not None
    ]  # What has ended needs no way back.
    _keep([*earlier, *changes])  # Whatever ends us from here on, all of it can be put back.
    problems = {one: set_value(one, one.after) for one in changes}
    failed = [f"{one.place} {one.text}: {text}".strip() for one, text in problems.items() if text]
    done = [one for one, text in problems.items() if not text]
    _keep([*earlier, *done])
    return Healed(done, list(_find_left(owed, done)), failed, len(seen))


def _find_owed(policy: Policy, one: Living) -> Owed:
    return find_owed(policy, one.home, one.user, one.process.comm, one.process.cgroup)


def _keep(changes: Sequence[Change]) -> None:
    if changes and os.geteuid() == 0:
        keep_record(changes)


def _plan_kernel(policy: Policy) -> Iterator[Change]:
    """Yield the sysctls that are below a minimum; what must be exact is no more and no less."""
    asked = {key: one for key, one in (policy.get("kernel") or {}).items() if one.exact is None}
    running = {key: read_sysctl(key) or "" for key in asked}
    known = {
        key: one
        for key, one in asked.items()
        if len(parse_fields(running[key])) == (len(one.fields) or 1)
    }
    for key, text in plan_writes(known, running):
        yield Change(SYSCTL, key, "", parse_fields(running[key]), parse_fields(text), "", "kernel:")


def _find_nr_open(changes: Sequence[Change]) -> list[int]:
    return [one.after[0] for one in changes if one.item == "fs.nr_open"]


def _plan_processes(owed: Sequence[tuple[Living, Owed]], nr_open: int) -> Iterator[Change]:
    may_raise = os.geteuid() == 0 and may_raise_limits()
    for one, asked in owed:
        process = one.process
        try:
            has = read_limits(process.pid)
        except (OSError, ValueError):
            continue  # It has ended.
        target, who = f"{process.pid}:{process.start}", f"{process.comm} {process.pid}"
        for item, pair in plan_limits(asked.limits, has, nr_open, may_raise):
            yield Change(LIMIT, item, target, has[item], pair, who, one.home.place)


def _plan_places(owed: Sequence[tuple[Living, Owed]]) -> Iterator[Change]:
    """Yield what is raised once for many processes: bounds of cgroups, and /dev/shm."""
    if os.geteuid():
        return
    found: dict[tuple[str, str], Change] = {}
    for one, asked in owed:
        for change in (*_plan_tasks(one, asked), *_plan_shm(one, asked)):
            name = change.target if change.kind == TASKS else change.place
            found.setdefault((change.kind, name), change)
    yield from found.values()


def _plan_tasks(one: Living, asked: Owed) -> Iterator[Change]:
    if asked.tasks is None:
        return
    for level in read_levels(one.process.cgroup):
        name = who = level.unit
        if one.home.kind == CONTAINER and one.home.name in name:
            name, who = f"{one.home.engine}/{one.home.name}", ""
        elif not name.endswith((".service", ".slice", ".scope")):
            continue
        if level.most < asked.tasks:
            target, pair = f"{name} {level.path}", ((level.most,), (asked.tasks,))
            yield Change(TASKS, "tasks", target, *pair, who, one.home.place)


def _plan_shm(one: Living, asked: Owed) -> Iterator[Change]:
    wanted = asked.shm_size
    if wanted is None:
        return
    try:
        is_inside = one.home.kind == CONTAINER
        if is_inside and shares_shm(one.process.pid):
            return  # It is the host's, for which another key of the policy asks.
        now = read_size(find_folder(str(one.process.pid))) if is_inside else read_shm_size()
    except OSError:
        return
    if now < wanted:
        target, place = "", "host:"
        if is_inside:
            first = f"{one.process.pid}:{one.process.start}"
            target, place = f"{one.home.engine}/{one.home.name}:{first}", one.home.place
        yield Change(SHM, SHM_PATH, target, (now,), (wanted,), "", place)


def _find_left(owed: Sequence[tuple[Living, Owed]], done: Sequence[Change]) -> Iterator[str]:
    """Yield what the living lack afterwards; of a check, what they would."""
    reason = ""
    if os.geteuid() or not may_raise_limits():
        reason = "; only root raises more" if os.geteuid() else "; it takes CAP_SYS_RESOURCE"
    given = {(one.target, one.item): one.after for one in done if one.kind == LIMIT}
    for one, asked in owed:
        process = one.process
        try:
            has = dict(read_limits(process.pid))
        except (OSError, ValueError):
            continue
        for item in has:
            after = given.get((f"{process.pid}:{process.start}", item))
            has[item] = type(has[item])(*after) if after else has[item]
        for told in find_short(asked.limits, has):
            yield f"{one.home.place} {told}{reason}"
