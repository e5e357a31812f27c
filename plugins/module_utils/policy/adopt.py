# SPDX-License-Identifier: BSD-2-Clause
"""Turn what a site's own files state of the kernel, of services and of Docker into a policy.

A value is adopted where it is what a boot, or the next start, makes of all files. The reader of
policies says itself what one cannot hold.
"""

from __future__ import annotations

from typing import NamedTuple

from .declaration import Declaration
from .docker_config import SHM_KEY, find_faults, read_entries, read_members, read_shm_size
from .docker_flags import read_flag_defaults
from .json_text import find_member, line_of
from .logind_conf import LOGIND, read_remove_ipc
from .plan_services import USER_CONF
from .quote import one_line
from .rlimit import ITEMS, UNLIMITED, Rlimit, format_quantity
from .schema import find_problems
from .services_policy import TASKS
from .sysctl_conf import SYSCTL_CONF
from .sysctl_writes import SYSTEMD
from .systemd_limits import MANAGER, read_manager_limits, read_unit_limits
from .tasks_max import MOST, read_default_tasks, read_unit_tasks, resolve_tasks
from .unit_file import Source
from .unit_want import declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from .dockerd_flags import Flag
    from .sysctl_conf import SysctlLine
    from .sysctl_writes import Reader
    from .unit_model import Files

_OF_OTHERS = ("/usr/lib/", "/usr/share/", "/lib/", "/run/")
"""Where packages and running programs keep what they state; the rest is the site's."""

_MANAGERS = {MANAGER: "default", USER_CONF: "user_default"}
_DOCKER = ("containers", "docker")


class Stated(NamedTuple):
    """One value of a policy as YAML has it, and the lines that state it."""

    value: object
    at: tuple[Declaration, ...]


class LeftOut(NamedTuple):
    """A line that the policy does not hold, or not quite as it was, and why."""

    at: Declaration
    reason: str


class Adopted(NamedTuple):
    """A section of a policy, whose leaves are :class:`Stated`, and what is not in it."""

    section: dict[str, object]
    left: list[LeftOut]


class Candidate(NamedTuple):
    """A value that a line states for a place in the policy; ``reason`` is why it cannot be held."""

    path: tuple[str, ...]
    value: object
    at: Declaration
    reason: str = ""


def settle(candidates: Sequence[Candidate]) -> Adopted:
    """Return what counts: of one place in the policy the last candidate, if it is the site's."""
    last = {one.path: one for one in candidates}
    adopted = Adopted({}, [])
    for one in candidates:
        if not is_of_site(one.at.path):
            continue
        winner = last[one.path]
        reason = one.reason or find_refusal(one.path, one.value)
        reason = reason if winner is one else describe_loss(winner.at)
        if reason:
            adopted.left.append(LeftOut(one.at, reason))
        else:
            _put(adopted.section, one.path, Stated(one.value, (one.at,)))
    return adopted


def is_of_site(path: str) -> bool:
    """Tell whether a file is the site's own, and no package's."""
    return not path.startswith(_OF_OTHERS)


def describe_loss(winner: Declaration) -> str:
    return f"has no effect: {winner.place} counts"


def find_refusal(path: Sequence[str], value: object) -> str:
    """Return why no policy holds a value in this place, in its reader's own words; or nothing."""
    raw: object = value
    for key in reversed(path):
        raw = {key: raw}
    problems = map(one_line, find_problems(raw))  # type: ignore[arg-type]
    return "; ".join(dict.fromkeys(problem.partition(": ")[2] for problem in problems))


def _put(section: dict[str, object], path: tuple[str, ...], leaf: Stated) -> None:
    for key in path[:-1]:
        section = section.setdefault(key, {})  # type: ignore[assignment]
    section[path[-1]] = leaf


def write_value(item: str, value: int | str) -> int | str:
    """Return a value in the kernel's unit as a policy states it."""
    if isinstance(value, str) or item == "priority":
        return value
    if value >= UNLIMITED:
        return "unlimited"
    if item == "nice":
        return 20 - value
    unit = ITEMS[item].unit if item in ITEMS else ""
    return format_quantity(value, unit) if unit else value


def write_limit(item: str, limit: Rlimit) -> object:
    """Return a limit as a policy states it: one value, or both bounds."""
    soft, hard = (write_value(item, bound) for bound in limit)
    return soft if soft == hard else {"soft": soft, "hard": hard}


def find_excess(item: str, highest: int, nr_open: int | None) -> str:
    """Return why no process can have a limit; or nothing."""
    if item == "nofile" and nr_open is not None and nr_open < highest < UNLIMITED:
        return f"is above fs.nr_open, {nr_open}, so no process can have it"
    return ""


def list_site_keys(files: Mapping[str, str], procps: Reader) -> list[str]:
    """Return the sysctls that the site's files name."""
    lines = [*_read_sysctl_conf(files, procps), *SYSTEMD.read(files)]
    found = (line.key for line in lines if is_of_site(line.path) and not line.glob)
    return list(dict.fromkeys(found))


def _read_sysctl_conf(files: Mapping[str, str], procps: Reader) -> list[SysctlLine]:
    """Return the lines of sysctl.conf, unless a boot reads it through a link as well."""
    text = files.get(SYSCTL_CONF, "")
    linked = any(other == text for path, other in files.items() if path != SYSCTL_CONF)
    return [] if linked else procps.parse(text, SYSCTL_CONF)


def adopt_kernel(
    files: Mapping[str, str], procps: Reader, lacking: Collection[str] = ()
) -> Adopted:
    """Return the sysctls that the site's lines give a boot, or else ``sysctl -p``.

    :param files: Text of every file in the folders of sysctl.d(5), and of sysctl.conf, by path.
    :param procps: How sysctl.conf is read.
    :param lacking: Keys that this kernel has not.
    """
    # Of one sysctl a boot heeds the line that it reads last.
    lines = [*_read_sysctl_conf(files, procps), *SYSTEMD.read(files)]
    adopted = settle([_weigh(line, lacking) for line in lines])
    stated = [at for leaf in adopted.section.get("kernel", {}).values() for at in leaf.at]  # type: ignore[attr-defined]
    late = "is read by sysctl -p alone and not at boot; a policy sets it at boot too"
    adopted.left.extend(LeftOut(at, late) for at in stated if at.path == SYSCTL_CONF)
    return adopted


def _weigh(line: SysctlLine, lacking: Collection[str]) -> Candidate:
    reason = ""
    if line.glob:
        reason = "names many sysctls; a policy names each"
    elif line.value is None:
        reason = "assigns nothing"
    elif line.key in lacking:
        reason = "this kernel has no such sysctl"
    at = line.declaration
    return Candidate(("kernel", line.key), {"exact": at.value}, at, reason)


def adopt_services(units: Mapping[str, Files], nr_open: int | None = None) -> Adopted:
    """Return what the site's lines give units, systemd's managers and logind.

    :param units: The files of each by its name, ``system.conf`` and its like among them.
    :param nr_open: The highest nofile that a process can have, where it is known.
    """
    return settle([one for name in units for one in _read_owner(name, units[name], nr_open)])


def _read_owner(name: str, files: Files, nr_open: int | None) -> Iterator[Candidate]:
    if name == LOGIND:
        for at in read_remove_ipc(files):
            yield Candidate(("services", "logind", "remove_ipc"), at.value == 1, at)
        return
    kind = name.rpartition(".")[2]
    if name in _MANAGERS:
        path: tuple[str, ...] = ("services", _MANAGERS[name])
        reading = read_manager_limits(files.manager, files.manager_dropins)
        tasks = read_default_tasks(files)
    else:
        path = ("services", "units", name)
        reading = read_unit_limits(kind, files.main or Source(name, ""), files.dropins)
        tasks = read_unit_tasks(kind, files)
    for line in [*reading.ignored, *([reading.refused] if reading.refused else [])]:
        at = Declaration(line.path, line.line, line.text, "")
        yield Candidate((*path, at.place), "", at, f"has no effect: {line.reason}")
    for one in reading.statements:
        reason = find_excess(one.item, one.limit.hard, nr_open)
        yield Candidate((*path, one.item), write_limit(one.item, one.limit), declare(one), reason)
    for at in tasks:
        yield Candidate((*path, TASKS), _write_tasks(str(at.value)), at)


def _write_tasks(text: str) -> object:
    """Return a number of tasks; a share of what a host can hold is none, and its reader says so."""
    few, many = (resolve_tasks(text, highest) for highest in (0, MOST))
    return text if few != many or few is None else write_value(TASKS, few)


def adopt_docker(
    text: str, path: str, flags: Sequence[Flag] = (), nr_open: int | None = None
) -> Adopted:
    """Return the defaults of containers that daemon.json and the site's flags of dockerd state.

    :raises ValueError: If the text is no JSON object.
    """
    stated = [
        (default.name, default.limit, default.declaration, "")
        for default in read_flag_defaults(flags)
    ]
    members = read_members(text, path)
    for entry in read_entries(text, path, members):
        faults = [fault.text for fault in find_faults(entry, nr_open or UNLIMITED) if fault.stops]
        at = Declaration(path, entry.line, entry.text, "")
        stated.append((entry.name or entry.item, entry.limit, at, "; ".join(faults)))
    shm = find_member(members, SHM_KEY)
    if shm:
        size = read_shm_size(text, shm)
        at = Declaration(path, line_of(text, shm.start), text[shm.start : shm.end], "")
        reason = "dockerd takes no such size" if size is None else ""
        stated.append(("shm_size", Rlimit(size or 0, size or 0), at, reason))
    return settle([_weigh_default(*one) for one in stated])


def _weigh_default(name: str, limit: Rlimit, at: Declaration, reason: str) -> Candidate:
    if name == "shm_size":
        return Candidate((*_DOCKER, name), format_quantity(limit.hard, "bytes"), at, reason)
    value = None if reason else write_limit(name, limit)
    return Candidate((*_DOCKER, "limits", name), value, at, reason)
