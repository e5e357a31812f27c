# SPDX-License-Identifier: BSD-2-Clause
"""Plan what sysctl.d(5) must say and which running values must rise; none is ever lowered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.edit import HEADER
from ..core.fields import are_met, parse_fields, raise_fields
from ..core.option_names import name_option
from ..core.plan import SectionPlan, Shortfall, neutralise_all, plan_edits, restore_all
from ..core.values import Bound, Declaration, NamedTuple
from .policy import KernelValue
from .sysctl_conf import (
    DROP_IN,
    FILE_MAX_OF_SYSTEMD,
    NR_OPEN_OF_SYSTEMD,
    find_boot_default,
    find_number,
    parse_sysctl_number,
)
from .sysctl_writes import find_lowest_nr_open, resolve_sysctl

_OF_SYSTEMD = (FILE_MAX_OF_SYSTEMD, NR_OPEN_OF_SYSTEMD)
_FOLDER = "/etc/sysctl.d/"
_WRITABLE = ("/etc/", "/run/", "/usr/local/")


class KernelOptions(NamedTuple):
    """How the section is made true."""

    target: str = DROP_IN
    override: bool = False
    absent: bool = False


class KernelPlan(NamedTuple):
    """The files, the running values to write in this order, and what fs.nr_open will be.

    ``nr_open`` is the lowest value in force from now on, after a boot too.
    """

    section: SectionPlan
    writes: tuple[tuple[str, str], ...] = ()
    nr_open: int | None = None


def plan_kernel(
    wanted: Mapping[str, KernelValue],
    files: Mapping[str, str],
    running: Mapping[str, str | None],
    options: KernelOptions,
) -> KernelPlan:
    """Return the edits of the sysctl files and the running values to write.

    :param files: Text of every file in the folders of sysctl.d(5), by path.
    :param running: Text of each key's file under /proc/sys; ``None`` where it is absent.
    """
    ours = {path: text for path, text in files.items() if _is_ours(path, text)}
    foreign = restore_all({path: text for path, text in files.items() if path not in ours})
    gone: dict[str, str | None] = dict.fromkeys(ours)
    if options.target in foreign:
        advice = f"name another {name_option('kernel_file')}"
        problem = f"{options.target}: was not written by mlhost.limits; {advice}"
        return KernelPlan(SectionPlan(problems=(problem,)))
    if options.absent:
        return KernelPlan(
            SectionPlan(plan_edits(files, {**foreign, **gone})),
            nr_open=find_lowest_nr_open(foreign, running),
        )
    problems = tuple(_find_problems(wanted, foreign, running, options.target))
    if problems:
        return KernelPlan(SectionPlan(problems=problems))
    writes = tuple(plan_writes(wanted, running))
    after_writes = {**running, **dict(writes)}
    held = _resolve(ours, wanted)
    winners = _resolve(foreign, wanted)
    text = _format_file(wanted, winners, held, running)
    mine = {options.target: text} if text else {}
    beaten = list(_find_shortfalls(wanted, {**foreign, **mine}, options))
    fixed = neutralise_all(
        foreign, [shortfall.foreign for shortfall in beaten if shortfall.neutralized]
    )
    edits = plan_edits(files, {**fixed, **gone, options.target: text or None})
    section = SectionPlan(edits, shortfalls=tuple(beaten))
    return KernelPlan(section, writes, find_lowest_nr_open({**fixed, **mine}, after_writes))


def _is_ours(path: str, text: str) -> bool:
    return path.startswith(_FOLDER) and text.startswith(HEADER)


def _find_problems(
    wanted: Mapping[str, KernelValue],
    foreign: Mapping[str, str],
    running: Mapping[str, str | None],
    target: str,
) -> Iterator[str]:
    name = target[len(_FOLDER) :]
    well_named = (
        name.isprintable()
        and name.endswith(".conf")
        and not name.startswith(".")
        and "/" not in name
    )
    if not target.startswith(_FOLDER) or not well_named:
        yield (
            f"{name_option('kernel_file')}: {target!r} is not read at every boot;"
            " accepted is /etc/sysctl.d/NAME.conf"
        )
    for path in foreign:
        if path.rpartition("/")[2] == name:
            yield f"{name_option('kernel_file')}: {target!r} would hide {path}; name another"
    for key, value in wanted.items():
        text = running.get(key)
        if text is None:
            yield f"kernel.{key}: this kernel has no such sysctl"
        elif value.fields and len(parse_fields(text)) != len(value.fields):
            yield f"kernel.{key}: holds {text!r}, and {len(value.fields)} numbers were given"
        elif value.minimum is not None and not (text.isascii() and text.isdigit()):
            yield f"kernel.{key}: holds {text!r}, which is not a number; 'exact' is accepted"


def plan_writes(
    wanted: Mapping[str, KernelValue], running: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """Yield what must change now; fs.nr_open first, because limits on nofile depend on it."""
    for key in sorted(wanted, key=lambda name: name != "fs.nr_open"):
        value, text = wanted[key], running[key] or ""
        if value.exact is not None:
            if value.exact.split() != text.split():
                yield key, value.exact
        elif value.fields and not are_met(value.fields, parse_fields(text)):
            yield key, raise_fields(value.fields, text)
        elif value.minimum is not None and int(text) < value.minimum:
            yield key, str(value.minimum)


def _format_file(
    wanted: Mapping[str, KernelValue],
    winners: Mapping[str, Bound],
    held: Mapping[str, Bound],
    running: Mapping[str, str | None],
) -> str:
    """Return our file, or nothing where every key is met at boot without it."""
    lines = []
    stated = False
    for key, value in wanted.items():
        line = _format_line(key, value, winners.get(key), held.get(key), running[key] or "")
        stated = stated or not line.startswith("#")
        lines.append(line)
    return "\n".join([HEADER, *lines]) + "\n" if stated else ""


def _format_line(
    key: str, value: KernelValue, winner: Bound | None, held: Bound | None, text: str
) -> str:
    if value.exact is not None:
        return f"{key} = {value.exact}"
    if value.fields:
        stated_fields = winner.winner.value if winner else ""
        if winner and _is_met(value, winner.winner):
            return f"# {key}: {winner.winner.path} states at least as much."
        return f"{key} = {raise_fields(value.fields, text, stated_fields)}"
    if value.minimum is None:
        return f"# {key}: only a maximum is required, so nothing is set."
    stated = find_number(winner.winner) if winner else None
    if winner and stated is not None:  # The kernel refuses any other text.
        if stated >= value.minimum:
            return f"# {key}: {winner.winner.path} states at least {value.minimum}."
        return f"{key} = {value.minimum}"
    own = find_number(held.winner) if held else None
    return _format_unstated(key, value.minimum, own or 0, int(text))


def _format_unstated(key: str, minimum: int, own: int, now: int) -> str:
    """Return our line for a key that no other file states; *own* is what it held so far."""
    default = find_boot_default(key, now)
    if default is not None and default < minimum:
        return f"{key} = {minimum}"
    if default is not None and default != own:
        who = "systemd" if default in _OF_SYSTEMD else "the kernel"
        return f"# {key}: {who} starts with at least {minimum}; a line might lower it."
    # What an unstated key has at boot is not known, so the running value must not be lowered:
    # no default is known, or what looks like systemd's comes from our own line.
    return f"{key} = {own if own >= minimum else max(minimum, now)}"


def _find_shortfalls(
    wanted: Mapping[str, KernelValue], files: Mapping[str, str], options: KernelOptions
) -> Iterator[Shortfall]:
    """Yield the lines that win at boot with less than is required."""
    for key, bound in _resolve(files, wanted).items():
        ranked = (*bound.shadowed, bound.winner)
        places = [index for index, one in enumerate(ranked) if one.path == options.target]
        for foreign in ranked[places[-1] + 1 :] if places else ():
            if not _is_met(wanted[key], foreign):
                editable = options.override and foreign.path.startswith(_WRITABLE)
                yield Shortfall(foreign, ranked[places[-1]].text, editable)


def _resolve(files: Mapping[str, str], wanted: Mapping[str, KernelValue]) -> dict[str, Bound]:
    """Return the lines that win at boot; of a key with a minimum the kernel takes but numbers."""
    return resolve_sysctl(
        files,
        list(wanted),
        is_taken=lambda key, text: (
            wanted[key].minimum is None or parse_sysctl_number(text) is not None
        ),
    )


def _is_met(value: KernelValue, stated: Declaration) -> bool:
    if value.exact is not None:
        return str(stated.value).split() == value.exact.split()
    if value.fields:
        return are_met(value.fields, parse_fields(stated.value))
    number = find_number(stated)
    return number is not None and number >= (value.minimum or 0)
