# SPDX-License-Identifier: BSD-2-Clause
"""Say why /dev/shm is smaller than a policy asks, now or after a boot."""

from __future__ import annotations

from typing import NamedTuple

from ..core.cause import Cause, Link, cite
from ..core.declaration import Declaration
from ..core.finding import FAIL, PASS, UNKNOWN
from ..core.forecast import Forecast
from ..core.remedy import Remedy, append_line, replace_line
from ..core.rlimit import format_quantity
from .model import FSTAB, SHM, find_default, find_lines, format_line


def foretell_shm(size: int, fstab: str) -> Forecast:
    """Return what fstab gives /dev/shm on a host whose memory is not known."""
    least, most = (find_lines(fstab, memory) for memory in (0, 2**60))
    if not least or least[0].value != most[0].value:
        return Forecast(UNKNOWN, reason="its size depends on the memory of the host")
    line = least[0]
    if int(line.value) >= size:
        return Forecast(PASS, line.value, line)
    causes = tuple(find_shm_causes(size, ShmFacts(int(line.value), fstab, 0)))
    return Forecast(FAIL, line.value, line, causes)


CODES = {
    "shm-stated-too-small": "the first line of fstab for /dev/shm counts, and states too little",
    "shm-not-stated": "no line of fstab is for /dev/shm, which has half of the memory then",
    "shm-remounted": f"{SHM} was made smaller while it was mounted, and no file says so",
}


class ShmFacts(NamedTuple):
    """What decides the size of /dev/shm: its size now, fstab's text and the memory, in bytes."""

    size: int
    fstab: str
    memory: int


def predict_shm(facts: ShmFacts) -> int:
    """Return the size of /dev/shm after a boot."""
    lines = find_lines(facts.fstab, facts.memory)
    return int(lines[0].value) if lines else find_default(facts.memory)


def find_shm_causes(minimum: int, facts: ShmFacts) -> list[Cause]:
    """Return what must change, the file first: a remount alone is lost at a boot."""
    remount = ("mount", "-o", f"remount,size={minimum}", SHM)
    boot = predict_shm(facts)
    lines = find_lines(facts.fstab, facts.memory)
    causes = []
    if boot < minimum and lines:
        causes.append(_blame_line(minimum, lines, remount))
    elif boot < minimum:
        half = format_quantity(find_default(facts.memory), "bytes")
        text = f"no line of {FSTAB} is for {SHM}, so that it has half of the memory, {half}"
        stated = append_line(FSTAB, format_line(minimum))
        remedy = stated._replace(commands=(*stated.commands, remount))
        causes.append(Cause("shm-not-stated", text, remedy))
    elif facts.size < minimum:
        has, gives = (format_quantity(size, "bytes") for size in (facts.size, boot))
        text = f"{SHM} was remounted with {has}; a boot gives it {gives}"
        causes.append(Cause("shm-remounted", text, Remedy("remount it", (remount,))))
    return causes


def _blame_line(minimum: int, lines: list[Declaration], remount: tuple[str, ...]) -> Cause:
    line = lines[0]
    enough = [other for other in lines if int(other.value) >= minimum]
    told = f"{cite(line)} states too little"
    if enough:
        told = f"{cite(line)} comes first and beats {cite(enough[0])}"
    remedy = replace_line(line, format_line(minimum))
    commands = (*remedy.commands, remount)
    return Cause(
        "shm-stated-too-small",
        told,
        remedy._replace(commands=commands),
        line,
        tuple(enough[:1]),
    )


def trace_shm(facts: ShmFacts) -> list[Link]:
    """Return who has a say in the size of /dev/shm, in the order of their words."""
    links = [Link("memory", format_quantity(facts.memory, "bytes"), "MemTotal of /proc/meminfo")]
    half = format_quantity(find_default(facts.memory), "bytes")
    links.append(Link("default", half, "tmpfs gives half of the memory"))
    for number, line in enumerate(find_lines(facts.fstab, facts.memory)):
        source = cite(line) + ("" if number == 0 else " (not read: the first line counts)")
        links.append(Link("fstab", format_quantity(int(line.value), "bytes"), source))
    now = format_quantity(facts.size, "bytes")
    return [*links, Link("mounted", now, f"statvfs of {SHM}")]
