# SPDX-License-Identifier: BSD-2-Clause
"""Plan the drop-in of containers.conf that gives new containers of Podman what a policy asks for.

A drop-in replaces the whole list of limits, so ours repeats what others state for other items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..containers.policy import ContainerPolicy
from ..core.cause import cite
from ..core.edit import HEADER
from ..core.plan import SectionPlan, Shortfall, neutralise_all, plan_edits, restore_all
from ..core.values import ITEMS, Declaration, NamedTuple, Rlimit, format_quantity
from .containers_conf import (
    LIMITS_KEY,
    OWN,
    SHM_KEY,
    TASKS_KEY,
    ConfError,
    Stated,
    find_tasks,
    format_entry,
    format_tasks,
    order_files,
    read_all,
    resolve,
)


class Engine(NamedTuple):
    """Whose drop-in is planned: CRI-O's files replace one another's lists as Podman's do.

    ``order`` sorts paths as the engine reads them, ``read`` returns what files state together.
    """

    name: str = "Podman"
    path: str = "containers.podman"
    own: str = OWN
    table: str = "[containers]"
    order: Callable[[Iterable[str]], list[str]] = order_files
    read: Callable[[Mapping[str, str]], tuple[Stated, ...]] = read_all


PODMAN = Engine()


class PodmanState(NamedTuple):
    """What a host has: the files that root's engine reads, by path, and whether it is there."""

    files: Mapping[str, str]
    installed: bool = True


def plan_podman(
    policy: ContainerPolicy,
    state: PodmanState,
    nr_open: int | None,
    override: bool = False,
    absent: bool = False,
    engine: Engine = PODMAN,
) -> SectionPlan:
    """Return the edits of our drop-in, and of lines of others where they are to be ineffective.

    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    own = engine.own
    theirs = restore_all({path: text for path, text in state.files.items() if path != own})
    wanted = policy.stated
    if absent or not (wanted or policy.shm_size or policy.tasks):
        return SectionPlan(plan_edits(state.files, {**theirs, own: None}))
    excess = policy.describe_excess(engine.path, nr_open)
    problems = [f"{excess}, so no container would start"] if excess else []
    try:
        stated = engine.read(theirs)
    except ConfError as error:
        problems.append(f"{error}; put it right first: nothing is written beside it")
        stated = ()
    if problems:
        return SectionPlan(problems=tuple(problems))
    split = engine.order([*theirs, own]).index(own)
    (mine,) = engine.read({own: format_drop_in(policy, stated[:split], engine.table)})
    shortfalls = tuple(find_shortfalls(policy, [*stated[:split], mine], stated[split:], override))
    silenced: set[tuple[str, int]] = set()
    if override:
        silenced = {row for one in shortfalls for row in _list_rows(one.foreign, stated)}
    # What is silenced there is ours to repeat; what is not comes after ours by itself.
    merged = [one for one in stated[split:] if _is_silenced(one, silenced)]
    ours = format_drop_in(policy, [*stated[:split], *merged], engine.table)
    dead = [Declaration(path, line, "", "") for path, line in silenced]
    texts = {**neutralise_all(theirs, dead), own: ours}
    notes = () if state.installed else (f"{own}: takes effect once {engine.name} is installed",)
    return SectionPlan(plan_edits(state.files, texts), (), shortfalls, notes)


def find_shortfalls(
    policy: ContainerPolicy, before: Sequence[Stated], later: Sequence[Stated], override: bool
) -> Iterator[Shortfall]:
    """Yield the lines of files read after ours that leave a container with less.

    A list without one of our limits takes it away, since it replaces ours.

    :param before: What is read up to ours, ours included.
    """
    for index, one in enumerate(later):
        given = resolve([*before, *later[: index + 1]]).ulimits
        for item, limit in policy.stated.items():
            got = given.get(item)
            at = got.at if got else one.block.at if one.block else None
            if at is None or at.path != one.path:
                continue
            if got is None or got.limit.soft < limit.soft or got.limit.hard < limit.hard:
                yield Shortfall(at, format_entry(item, limit), override)
        if policy.shm_size and one.shm and int(one.shm.value) < policy.shm_size:
            yield Shortfall(one.shm, f'{SHM_KEY} = "{policy.shm_size}"', override)
        most = find_tasks(one.tasks) or 0
        if policy.tasks and one.tasks and most < policy.tasks:
            yield Shortfall(one.tasks, f"{TASKS_KEY} = {format_tasks(policy.tasks)}", override)


def _list_rows(at: Declaration, stated: Sequence[Stated]) -> Iterator[tuple[str, int]]:
    """Yield every line of what is to be ineffective: a list goes as a whole."""
    (block,) = {one.path: one.block for one in stated if one.path == at.path}.values()
    inside = block and block.at.line <= at.line <= block.end
    last = block.end if block and inside else at.line
    first = block.at.line if block and inside else at.line
    for line in range(first, last + 1):
        yield at.path, line


def _is_silenced(one: Stated, silenced: set[tuple[str, int]]) -> bool:
    return one.block is not None and (one.path, one.block.at.line) in silenced


def format_drop_in(policy: ContainerPolicy, stated: Sequence[Stated], table: str) -> str:
    """Return our file: what is wanted, and what others state for other items.

    :param stated: The files of others that ours takes the place of.
    """
    wanted = policy.stated
    given = resolve(stated).ulimits
    lines = [HEADER, table]
    if wanted:
        lines.append(f"{LIMITS_KEY} = [")
        lines += [f'  "{format_entry(item, wanted[item])}",' for item in sorted(wanted)]
        for item in sorted(set(given) - set(wanted)):
            lines.append(f"  # {_name(given[item].at)}")
            lines.append(f'  "{format_entry(item, given[item].limit)}",')
        lines.append("]")
    if policy.shm_size is not None:
        lines.append(f'{SHM_KEY} = "{policy.shm_size}"')
    if policy.tasks is not None:
        lines.append(f"{TASKS_KEY} = {format_tasks(policy.tasks)}")
    return "\n".join(lines) + "\n"


def find_lost(user: str, files: Mapping[str, str], session: Mapping[str, Rlimit]) -> Iterator[str]:
    """Yield why no container of a user would start: only root raises a hard limit.

    :param files: All that the user's Podman will read.
    :param session: The limits of a session of the user; none where they are not known.
    """
    try:
        given = resolve(read_all(files)).ulimits
    except ConfError:
        return  # A file of the user's own, which keeps Podman from starting as it is.
    for item, ulimit in sorted(given.items()):
        ceiling = session.get(item)
        if ceiling and ulimit.limit.hard > ceiling.hard:
            has, asked = (
                format_quantity(value, ITEMS[item].unit)
                for value in (ceiling.hard, ulimit.limit.hard)
            )
            yield (
                f"containers.podman: no container of {user} would start: {item} {asked}"
                f" ({ulimit.at.path}) is above the hard limit of a session of {user}, {has};"
                " raise that in sessions"
            )


def _name(at: Declaration) -> str:
    """Return where a line stands, for a comment, which must be UTF-8 and one line."""
    return cite(at).partition(' "')[0].encode("ascii", "backslashreplace").decode("ascii")
