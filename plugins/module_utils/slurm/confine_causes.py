# SPDX-License-Identifier: BSD-2-Clause
"""Say why a job of Slurm may use less memory or fewer CPUs than it asked for.

Sources: cgroup.conf(5); systemd.resource-control(5). A job's own cgroup and all above it count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..core.cause import Cause, Remedy, cite, replace_line
from ..core.values import Declaration, NamedTuple, format_quantity
from ..services.tasks_causes import SECTIONS
from ..systemd.edits import add_lines, pick_site_file
from ..systemd.unit_file import order_sources, scan_unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..systemd.model import Files
    from .confines import Confines, Level
    from .slurm_conf import SlurmConf

CODES = {
    "slurm-cgroup-conf": "a line of cgroup.conf gives jobs less memory than they ask for",
    "slurm-cgroup-not-read": "cgroup.conf would give jobs enough, and Slurm has not read it since",
    "slurm-unit-confines": "a unit of systemd above the cgroups of jobs bounds memory or CPUs",
}
ALLOWED, HIGHEST, LOWEST = "AllowedRAMSpace", "MaxRAMPercent", "MinRAMSpace"
_LEAST_MIB = 30  # MinRAMSpace, by default.
_RECONFIGURE = ("scontrol", "reconfigure")
_KEYS = {"memory": ("MemoryMax", "MemoryLimit"), "cpus": ("AllowedCPUs", "CPUAffinity")}
_UNIT = re.compile(r".+\.(slice|service|scope)")


class Asked(NamedTuple):
    """What a job asked for and shall have: ``memory`` in bytes or ``cpus``, and how much."""

    item: str
    amount: int


class Surroundings(NamedTuple):
    """cgroup.conf, whether the controller hands it out, and the files of the units above, by name.

    ``host_cpus`` is how many the host has.
    """

    conf: SlurmConf
    served: bool
    units: Mapping[str, Files]
    host_cpus: int


def name_unit(level: Level) -> str:
    """Return the unit of systemd whose cgroup this is; nothing for a cgroup of another kind."""
    name = level.path.rpartition("/")[2]
    return name if _UNIT.fullmatch(name) else ""


def list_levels(item: str, confines: Confines) -> Sequence[Level]:
    """Return the cgroups that bound memory, or those that have CPUs."""
    return confines.memory if item == "memory" else confines.cpu_levels


def predict_memory(asked: int, conf: SlurmConf, total: int) -> int:
    """Return what cgroup.conf leaves a job of the memory that it asks for."""
    share = asked * _read(conf, ALLOWED, 100) // 100
    most = total * _read(conf, HIGHEST, 100) // 100 if total else share
    return int(max(min(share, most), _read(conf, LOWEST, _LEAST_MIB) * 2**20))


def _read(conf: SlurmConf, key: str, default: float) -> float:
    line = conf.find(key)
    number = re.match(r"[0-9]+(\.[0-9]+)?", str(line.value)) if line else None
    return float(number[0]) if number else default


def find_confine_causes(
    asked: Asked, confines: Confines, around: Surroundings
) -> tuple[Cause, ...]:
    """Return what keeps a job from what it asked for; nothing where that is not known."""
    short = [one for one in list_levels(asked.item, confines) if one.most < asked.amount]
    causes = []
    if asked.item == "memory" and any(level.is_jobs for level in short):
        causes += blame_conf(asked.amount, confines.total, around)
        causes += [] if causes else [_blame_unread(asked, short)]
    above = [name_unit(level) for level in short if not level.is_jobs]
    units = [unit for unit in dict.fromkeys(above) if unit]
    if asked.item == "cpus" and not units:
        units = list(around.units)  # slurmd itself may run on a few only, and so do its jobs.
    for unit in units:
        at = _find_setting(unit, asked.item, around.units.get(unit))
        causes += [_blame_unit(asked, unit, at, around)] if at else []
    return tuple(causes)


def blame_conf(asked: int, total: int, around: Surroundings) -> list[Cause]:
    """Blame the lines of cgroup.conf that leave a job too little."""
    causes: list[Cause] = []
    if predict_memory(asked, around.conf, total) >= asked:
        return causes
    for key, whole in ((ALLOWED, asked), (HIGHEST, total)):
        line, percent = around.conf.find(key), _read(around.conf, key, 100)
        if line is None or whole * percent // 100 >= asked or not whole:
            continue
        of = (
            "what it asks for"
            if key == ALLOWED
            else f"the host's {format_quantity(total, 'bytes')}"
        )
        text = f"{cite(line)} leaves a job {percent:g} % of {of}"
        remedy = replace_line(line, f"{key}=100")
        commands = (*remedy.commands, _RECONFIGURE) if remedy.commands else ()
        remedy = remedy._replace(text=f"{remedy.text} on every node", commands=commands)
        if around.served:
            remedy = Remedy(f'state "{key}=100" in cgroup.conf of the controller, then reconfigure')
        causes.append(Cause("slurm-cgroup-conf", text, remedy, line))
    return causes


def _blame_unread(asked: Asked, short: Sequence[Level]) -> Cause:
    has = format_quantity(min(level.most for level in short), "bytes")
    wants = format_quantity(asked.amount, "bytes")
    text = f"cgroup.conf would give a job the {wants} that it asks for, and it has {has}"
    remedy = Remedy("let Slurm read it", (_RECONFIGURE,))
    return Cause("slurm-cgroup-not-read", f"{text}: Slurm has not read it since", remedy)


def _find_setting(unit: str, item: str, files: Files | None) -> Declaration | None:
    """Return the line of a unit that bounds memory or CPUs."""
    if files is None:
        return None
    section = SECTIONS[unit.rpartition(".")[2]]
    found = [
        setting.declare(setting.key)
        for source in order_sources(files.main, files.dropins)
        for setting in scan_unit(source.text, source.path).settings
        if setting.section == section and setting.key in _KEYS[item]
    ]
    return found[-1] if found else None


def _blame_unit(asked: Asked, unit: str, at: Declaration, around: Surroundings) -> Cause:
    """Blame a line of a unit; another that sorts last takes its bound away.

    systemd leaves a cgroup its CPUs where they are no longer stated, so all of them are.
    """
    path = pick_site_file(f"/etc/systemd/system/{unit}.d", around.units[unit].dropins)
    every = "infinity" if asked.item == "memory" else f"0-{around.host_cpus - 1}"
    text = f"{at.value}={every}"
    remedy = add_lines(path, SECTIONS[unit.rpartition(".")[2]], text)
    after: list[tuple[str, ...]] = [("systemctl", "daemon-reload")]
    after += [("systemctl", "restart", unit)] if at.value == "CPUAffinity" else []
    remedy = remedy._replace(commands=(*remedy.commands, *after) if remedy.commands else ())
    what = "memory" if asked.item == "memory" else "CPUs"
    return Cause(
        "slurm-unit-confines", f"{cite(at)} bounds the {what} of jobs in {unit}", remedy, at
    )
