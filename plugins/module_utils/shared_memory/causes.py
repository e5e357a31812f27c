# SPDX-License-Identifier: BSD-2-Clause
"""Say why /dev/shm is smaller than a policy asks, now or after a boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.cause import Cause, Link, Remedy, append_line, cite, replace_line
from ..core.finding import FAIL, PASS, UNKNOWN
from ..core.forecast import Forecast
from ..core.line_edit import edit_value
from ..core.quote import one_line
from ..core.values import UNLIMITED, Declaration, NamedTuple, format_quantity
from .boot_mounts import Mount, find_mounts
from .model import (
    FSTAB,
    SHM,
    Quota,
    find_default,
    find_lines,
    find_refused_option,
    find_size_for,
    format_line,
)


def foretell_shm(size: int, fstab: str, scripts: Mapping[str, str]) -> Forecast:
    """Return what fstab gives /dev/shm on a host whose memory is not known.

    :param scripts: What runs at boot and may mount it anew, by path.
    """
    mounts = find_mounts(scripts, 0)
    if mounts:
        at = mounts[0].at
        return Forecast(UNKNOWN, None, at, reason=f"{at.place} mounts it anew")
    least, most = (find_lines(fstab, memory) for memory in (0, UNLIMITED))
    if not least or least[0].value != most[0].value:
        return Forecast(UNKNOWN, reason="its size depends on the memory of the host")
    line = least[0]
    refused = find_refused_option(line)
    if refused:
        return Forecast(UNKNOWN, reason=f"{cite(line)}: tmpfs may refuse {one_line(refused)}")
    if int(line.value) >= size:
        return Forecast(PASS, line.value, line)
    causes = tuple(find_shm_causes(size, ShmFacts(int(line.value), fstab, 0)))
    return Forecast(FAIL, line.value, line, causes)


CODES = {
    "shm-stated-too-small": "the first line of fstab for /dev/shm counts, and states too little",
    "shm-not-stated": "no line of fstab is for /dev/shm, so it has half of the memory",
    "shm-script-wins": "a unit, cron or rc.local mounts it anew at boot, with too little",
    "shm-script-unclear": "what runs at boot may mount it anew with a size that no file tells",
    "shm-quota": f"systemd lets an ordinary user take 80 % of {SHM}, and that is too little",
    "shm-remounted": f"{SHM} was made smaller while it was mounted, and no file says so",
}


class ShmFacts(NamedTuple):
    """What decides the size of /dev/shm: its size now, fstab's text and the memory, in bytes.

    ``scripts`` are the texts of what runs at boot, by path; ``None`` where they cannot be read.
    """

    size: int
    fstab: str
    memory: int
    scripts: Mapping[str, str] | None = {}

    @property
    def mounts(self) -> list[Mount]:
        return find_mounts(self.scripts or {}, self.memory)


def foresee_boot(minimum: int, facts: ShmFacts) -> str:
    """Return whether a boot gives enough; of several that mount it anew each may be the last."""
    sizes = [mount.at.value for mount in facts.mounts] or [predict_shm(facts)]
    if any(isinstance(size, int) and size < minimum for size in sizes):
        return FAIL
    lines = [] if facts.mounts else find_lines(facts.fstab, facts.memory)[:1]
    is_open = "" in sizes or facts.scripts is None or any(map(find_refused_option, lines))
    return UNKNOWN if is_open else PASS


def predict_shm(facts: ShmFacts) -> int:
    """Return the size of /dev/shm after a boot that fstab gives."""
    lines = find_lines(facts.fstab, facts.memory)
    return int(lines[0].value) if lines else find_default(facts.memory)


def find_shm_causes(minimum: int, facts: ShmFacts) -> list[Cause]:
    """Return what must change, the file first: a remount alone is lost at a boot."""
    remount = ("mount", "-o", f"remount,size={minimum}", SHM)
    lines = find_lines(facts.fstab, facts.memory)
    causes = list(_blame_scripts(minimum, facts, remount))
    if foresee_boot(minimum, facts) == PASS:
        if facts.size < minimum:
            has = format_quantity(facts.size, "bytes")
            text = f"{SHM} was remounted with {has}; a boot gives it {_describe_boot(facts)}"
            causes.append(Cause("shm-remounted", text, Remedy("remount it", (remount,))))
    elif predict_shm(facts) < minimum:
        causes.append(
            _blame_line(minimum, lines, remount) if lines else _state(minimum, facts, remount)
        )
    return causes


def blame_quota(minimum: int, who: str, quota: Quota, facts: ShmFacts) -> Cause:
    """Say that a user may take less than there is, and what size gives enough."""
    has, size = format_quantity(quota.limit, "bytes"), find_size_for(minimum)
    when = "" if quota.is_set else " from the next login on"
    text = f"{who} may take {has} of {SHM}{when}: the 80 % that systemd 258 and later allow"
    causes = find_shm_causes(size, facts)
    commands = tuple(words for cause in causes for words in cause.remedy.commands)
    fix = f"make {SHM} larger, at least {format_quantity(size, 'bytes')}, of which 80 % are enough"
    then = (
        "end every session and unit of the user, and log in again: until then the old quota holds"
    )
    return Cause("shm-quota", text, Remedy(fix, commands, then))


def _describe_boot(facts: ShmFacts) -> str:
    sizes = [int(mount.at.value) for mount in facts.mounts] or [predict_shm(facts)]
    return format_quantity(min(sizes), "bytes")


def _state(minimum: int, facts: ShmFacts, remount: tuple[str, ...]) -> Cause:
    half = format_quantity(find_default(facts.memory), "bytes")
    text = f"no line of {FSTAB} is for {SHM}, so it has half of the memory: {half}"
    stated = append_line(FSTAB, format_line(minimum))
    remedy = stated._replace(commands=(*stated.commands, remount))
    return Cause("shm-not-stated", text, remedy)


def _blame_scripts(minimum: int, facts: ShmFacts, remount: tuple[str, ...]) -> Iterator[Cause]:
    """Yield the lines that run at boot and give too little, or nobody can say what."""
    for mount in facts.mounts:
        line = mount.at
        if isinstance(line.value, int) and line.value >= minimum:
            continue
        now = (remount,) if facts.size < minimum else ()
        if line.value == "":
            text = f"{cite(line)} runs at boot after {FSTAB} was read, and may change it"
            remedy = Remedy(f"make that line give size={minimum}, or take it out", now)
            yield Cause("shm-script-unclear", text, remedy, line)
        else:
            text = f"{cite(line)} runs at boot after {FSTAB} was read, and gives too little"
            edit = edit_value(line, mount.option, f"size={minimum}") if mount.option else ()
            remedy = Remedy(f"make that line give size={minimum}", (*edit, *now))
            yield Cause("shm-script-wins", text, remedy, line)


def _blame_line(minimum: int, lines: list[Declaration], remount: tuple[str, ...]) -> Cause:
    line = lines[0]
    enough = [other for other in lines if int(other.value) >= minimum]
    told = f"{cite(line)} states too little"
    if enough:
        told = f"{cite(line)} comes first and beats {cite(enough[0])}"
    remedy = replace_line(line, format_line(minimum))
    commands = (*remedy.commands, remount)
    return Cause(
        "shm-stated-too-small", told, remedy._replace(commands=commands), line, tuple(enough[:1])
    )


def trace_shm(facts: ShmFacts, quotas: Mapping[str, Quota] | None = None) -> list[Link]:
    """Return who can set the size of /dev/shm, in the order of their words.

    :param quotas: By the names of users.
    """
    links = [Link("memory", format_quantity(facts.memory, "bytes"), "MemTotal of /proc/meminfo")]
    half = format_quantity(find_default(facts.memory), "bytes")
    links.append(Link("default", half, "tmpfs gives half of the memory"))
    for number, line in enumerate(find_lines(facts.fstab, facts.memory)):
        source = cite(line) + ("" if number == 0 else " (not read: the first line counts)")
        links.append(Link("fstab", format_quantity(int(line.value), "bytes"), source))
    for line in (mount.at for mount in facts.mounts):
        size = format_quantity(line.value, "bytes") if isinstance(line.value, int) else "unknown"
        links.append(Link("at boot", size, cite(line)))
    now = format_quantity(facts.size, "bytes")
    links.append(Link("mounted", now, f"statvfs of {SHM}"))
    for who, quota in (quotas or {}).items():
        how = "its quota" if quota.is_set else "its quota from the next login on (80 %)"
        links.append(Link(who, format_quantity(quota.limit, "bytes"), how))
    return links
