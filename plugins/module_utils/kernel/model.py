# SPDX-License-Identifier: BSD-2-Clause
"""Predict the value of a sysctl after the next boot, from all that can set it, in its order.

The kernel's default, or systemd's; the kernel command line; the files of sysctl.d; tuned; what
units, cron and rc.local run. Each may write over what was there before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.finding import UNKNOWN, Observation, Requirement, judge
from ..core.values import Declaration, NamedTuple
from .sysctl_conf import (
    FILE_MAX_OF_SYSTEMD,
    LARGEST_NR_OPEN,
    MAX_MAP_COUNT_OF_KERNEL,
    NR_OPEN_OF_KERNEL,
    NR_OPEN_OF_SYSTEMD,
    SYSCTL_CONF,
    parse_sysctl_number,
)
from .sysctl_writes import PROCPS, SYSTEMD, Reader, resolve_sysctl
from .tuned_profile import Tuned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .boot_scripts import ScriptWrite
    from .lockouts import KernelUse

COMMAND_LINE = "/proc/cmdline"
DEFAULT, LATE, FILE, TUNED, SCRIPT = "default", "late", "file", "tuned", "script"
LOADER = "loader"

_SINGLE = re.compile(r"-?[0-9]+")
RANGES = {
    "fs.nr_open": (64, LARGEST_NR_OPEN),
    "fs.file-max": (0, 2**63 - 1),
    "vm.max_map_count": (0, 2**31 - 1),
    "kernel.pid_max": (301, 4194304),
}
# Constants of the kernel's source; where versions and machines differ, the least and the most.
_DEFAULTS = {
    "vm.max_map_count": (MAX_MAP_COUNT_OF_KERNEL,),
    "fs.aio-max-nr": (65536,),
    "fs.inotify.max_queued_events": (16384,),
    "fs.inotify.max_user_instances": (128,),
    "fs.inotify.max_user_watches": (8192, 1048576),
    "kernel.pid_max": (32768, 4194304),
    "kernel.shmmni": (4096,),
    "net.core.netdev_max_backlog": (1000,),
    "net.core.rmem_default": (212992,),
    "net.core.rmem_max": (212992, 4194304),
    "net.core.somaxconn": (128, 4096),
    "net.core.wmem_default": (212992,),
    "net.core.wmem_max": (212992, 4194304),
    "vm.dirty_background_ratio": (10,),
    "vm.dirty_ratio": (20,),
    "vm.swappiness": (60,),
}
_MODULES = (
    ("net.bridge.", "br_netfilter"),
    ("net.netfilter.", "nf_conntrack"),
    ("net.nf_conntrack_max", "nf_conntrack"),
)
_OF_INTERFACE = re.compile(r"net\.ipv[46]\.(conf|neigh)\.(?!(all|default|lo)\.)")


class KernelFacts(NamedTuple):
    """All that decides one key, now and at boot.

    ``files`` are those in the folders of sysctl.d(5) named ``*.conf`` and /etc/sysctl.conf;
    ``others`` are the rest of those folders; ``real`` says where a link among them leads.
    ``fresh`` are those changed since they were last applied, ``passing`` those that a boot
    does not make again. ``defaults`` are the values that the key may have where nobody states
    it, none where that is not known. ``stopped_by`` is what keeps the files from being applied.
    ``loader`` are the words of the boot loader's files that a next kernel may be given.
    ``recommended`` is what tuned does with each profile that it may choose itself.
    ``late`` is the module that brings the key after that, ``late_by`` what keeps it from being
    there before. ``unknown_keys`` are those stated in
    files that this kernel lacks.
    """

    key: str
    running: str | None
    files: Mapping[str, str]
    others: Mapping[str, str]
    real: Mapping[str, str]
    fresh: frozenset[str] = frozenset()
    passing: frozenset[str] = frozenset()
    defaults: tuple[str, ...] = ()
    command_line: str = ""
    loader: tuple[Declaration, ...] = ()
    tuned: Tuned | None = None
    recommended: tuple[Tuned, ...] = ()
    scripts: tuple[ScriptWrite, ...] = ()
    stopped_by: Declaration | None = None
    late: str = ""
    late_by: Declaration | None = None
    unknown_keys: frozenset[str] = frozenset()
    procps: Reader = PROCPS
    read_only: bool = False
    open_files: int | None = None
    use: KernelUse | None = None

    def is_taken(self, _key: str, text: str) -> bool:
        """Tell whether the kernel takes a value for this key."""
        if not _SINGLE.fullmatch(self.running or ""):
            return True
        return is_in_range(self.key, text)

    def normalize(self, value: int | str) -> str:
        """Return a value as the kernel shows it."""
        text = " ".join(str(value).split())
        if not _SINGLE.fullmatch(self.running or "") or text.startswith("-"):
            return text
        number = parse_sysctl_number(text)
        return text if number is None else str(number)


def is_in_range(key: str, text: str) -> bool:
    """Tell whether a text is a number that the kernel takes for a key."""
    sign, digits = text[:1] == "-", text.lstrip("-")
    number = parse_sysctl_number(digits)
    low, high = RANGES.get(key, (-(2**63), 2**64 - 1))
    return number is not None and low <= (-number if sign else number) <= high


class Forecast(NamedTuple):
    """The values that a key may have, none where that is not known, and who says so.

    ``kind`` tells who: the default, the command line (a kind of default), the boot loader, a file,
    tuned, a script; or that nothing is known, because the key comes too late for the files.
    """

    values: tuple[str, ...]
    by: Declaration | None = None
    kind: str = DEFAULT


def judge_value(wanted: Requirement, text: str) -> str:
    """Return whether a value meets a requirement."""
    is_text = wanted.exact is not None or wanted.fields
    number = None if is_text else parse_sysctl_number(text)
    return judge(wanted, Observation(text if number is None else number, "")).status


def judge_forecast(wanted: Requirement, forecast: Forecast) -> str:
    """Return pass or fail where every possible value agrees, and unknown otherwise.

    Several values are the least and the most: what lies between them may be the one required.
    """
    bounded = wanted.minimum is not None and wanted.maximum is not None
    if len(forecast.values) > 1 and (bounded or wanted.exact is not None or wanted.fields):
        return UNKNOWN
    found = {judge_value(wanted, value) for value in forecast.values}
    return found.pop() if len(found) == 1 else UNKNOWN


def find_module(key: str) -> str:
    """Return the module that brings a key, unless every kernel has it."""
    return next((module for start, module in _MODULES if key.startswith(start)), "")


def find_defaults(
    key: str, running: int | None, raises_nr_open: bool | None, raises_file_max: bool
) -> tuple[str, ...]:
    """Return the values that a key may have at boot where nobody states it.

    :param raises_nr_open: Whether systemd raises fs.nr_open; ``None`` where that is not known.
    :param raises_file_max: Whether systemd raises fs.file-max, as it does since 240.
    """
    if key == "fs.file-max":
        known = raises_file_max or running == FILE_MAX_OF_SYSTEMD
        return (str(FILE_MAX_OF_SYSTEMD),) if known else ()
    if key == "fs.nr_open":
        if raises_nr_open is None and running != NR_OPEN_OF_SYSTEMD:
            return (str(NR_OPEN_OF_KERNEL), str(NR_OPEN_OF_SYSTEMD))
        return (str(NR_OPEN_OF_KERNEL if raises_nr_open is False else NR_OPEN_OF_SYSTEMD),)
    return tuple(map(str, _DEFAULTS.get(key, ())))


def foresee_start(key: str, raises_nr_open: bool | None, raises_file_max: bool) -> str:
    """Return the least that a key has on a host that nobody configured; 0 where that is not known.

    For an image, whose own kernel does not run yet.
    """
    known = find_defaults(key, None, raises_nr_open, raises_file_max)
    return min(known, key=int, default="0")


def predict_boot(facts: KernelFacts) -> Forecast:
    """Return what the key will be after a boot."""
    if (facts.key.startswith("net.") and _OF_INTERFACE.match(facts.key)) or facts.late:
        return Forecast((), facts.late_by, LATE)
    forecast = apply_files(facts, find_start(facts))
    return _apply_scripts(facts, _apply_recommended(facts, _apply_tuned(facts, forecast)))


def find_start(facts: KernelFacts) -> Forecast:
    """Return what the key is before any file is read.

    The kernel heeds its command line before systemd raises what it raises. The next one may be
    another than the running kernel's: what a boot loader says besides is possible as well.
    """
    now = _find_given(facts)
    others = [word for word in facts.loader if facts.normalize(word.value) not in now.values]
    heeded = [word for word in others if _is_heeded(facts, str(word.value))]
    if not heeded:
        return now
    values = tuple(facts.normalize(word.value) for word in heeded)
    return Forecast((*values, *now.values), heeded[0], LOADER)


def _find_given(facts: KernelFacts) -> Forecast:
    """Return what the key was before any file was read, when the running kernel started."""
    for word in reversed(facts.command_line.split()):
        name, value = word.partition("=")[::2]
        wanted = facts.key.translate(str.maketrans("./", "//"))
        named = (
            name.startswith("sysctl.") and name[7:].translate(str.maketrans("./", "//")) == wanted
        )
        if named and _is_heeded(facts, value):
            by = Declaration(COMMAND_LINE, 0, word, value)
            return Forecast((facts.normalize(value),), by)
    return Forecast(facts.defaults)


def _is_heeded(facts: KernelFacts, value: str) -> bool:
    """Tell whether a value of a command line stays until the files are read."""
    return facts.is_taken(facts.key, value) and not _is_raised(facts, value)


def _is_raised(facts: KernelFacts, value: str) -> bool:
    """Tell whether systemd raises a value of the command line."""
    raised = {"fs.file-max": FILE_MAX_OF_SYSTEMD, "fs.nr_open": NR_OPEN_OF_SYSTEMD}.get(facts.key)
    number = parse_sysctl_number(value) or 0
    return raised is not None and facts.defaults == (str(raised),) and number <= raised


def list_boot_files(facts: KernelFacts) -> dict[str, str]:
    """Return the files that are there when systemd-sysctl runs."""
    return {path: text for path, text in facts.files.items() if path not in facts.passing}


def apply_files(facts: KernelFacts, before: Forecast) -> Forecast:
    """Return what systemd-sysctl makes of the key."""
    files = {} if facts.stopped_by else list_boot_files(facts)
    return _apply(facts, files, SYSTEMD, before)


def predict_reload(facts: KernelFacts) -> Forecast:
    """Return what ``sysctl --system`` makes of the key, in a kernel that has just started."""
    return _apply(facts, facts.files, facts.procps, find_start(facts))


def _apply(
    facts: KernelFacts, files: Mapping[str, str], reader: Reader, before: Forecast
) -> Forecast:
    bound = resolve_sysctl(files, [facts.key], reader, facts.is_taken).get(facts.key)
    if bound is None or not is_effective(facts, bound.winner):
        return before
    return Forecast((facts.normalize(bound.winner.value),), bound.winner, FILE)


def is_effective(facts: KernelFacts, line: Declaration) -> bool:
    """Tell whether a line assigns a value that the kernel takes."""
    return "=" in line.text and facts.is_taken(facts.key, str(line.value))


def _apply_tuned(facts: KernelFacts, before: Forecast) -> Forecast:
    """Return what tuned makes of the key, which then reads files in its own order."""
    tuned = facts.tuned
    if tuned is None or not tuned.enabled or not tuned.lines:
        return before
    forecast = before
    line = tuned.lines.get(facts.key)
    if line is not None:
        forecast = Forecast(_expand(facts, str(line.value), before), line, TUNED)
    if not tuned.reapplies or tuned.excludes(facts.key):
        return forecast
    return _apply(facts, _list_files_of_tuned(list_boot_files(facts)), facts.procps, forecast)


def _apply_recommended(facts: KernelFacts, before: Forecast) -> Forecast:
    """Return what the key may be with any of the profiles that tuned may choose itself."""
    forecasts = [_apply_tuned(facts._replace(tuned=one), before) for one in facts.recommended]
    others = [one for one in forecasts if one.values != before.values]
    if not others:
        return before
    if not all(one.values for one in forecasts):
        return next(one for one in others if not one.values)
    values = dict.fromkeys(value for one in (before, *others) for value in one.values)
    return Forecast(tuple(values), others[0].by, others[0].kind)


def _list_files_of_tuned(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files that tuned reads; one in /run hides its namesake in /etc."""
    found = {path: text for path, text in files.items() if path.startswith("/run/sysctl.d/")}
    names = {path.rpartition("/")[2] for path in found}
    for path, text in files.items():
        if path.startswith("/etc/sysctl.d/") and path.rpartition("/")[2] not in names:
            found[path] = text
    return {**found, SYSCTL_CONF: files.get(SYSCTL_CONF, "")}


def _expand(facts: KernelFacts, value: str, before: Forecast) -> tuple[str, ...]:
    """Return what a line of a profile gives: ``>N`` and ``<N`` only raise or only lower."""
    mark, number = value[:1], parse_sysctl_number(value[1:])
    if mark not in ("<", ">") or number is None:
        return (facts.normalize(value),) if facts.is_taken(facts.key, value) else ()
    old = [parse_sysctl_number(text) for text in before.values]
    pick = max if mark == ">" else min
    return tuple(str(pick(number, one)) for one in old if one is not None)


def _join_start(facts: KernelFacts, before: Forecast, at: Declaration) -> Forecast:
    """Return that what the files make of the key may be what it starts with instead."""
    start = find_start(facts)
    if before.kind != FILE or start.values == before.values:
        return before
    return Forecast((*before.values, *start.values) if start.values else (), at, SCRIPT)


def _apply_scripts(facts: KernelFacts, before: Forecast) -> Forecast:
    """Return what the scripts make of the key."""
    forecast = before
    loads = any(write.loads for write in facts.scripts)
    read = predict_reload(facts._replace(files=list_boot_files(facts))) if loads else before
    for write in facts.scripts:
        if write.loads:
            if read.kind == FILE and forecast.values and read.values != forecast.values:
                forecast = Forecast((*forecast.values, *read.values), forecast.by, forecast.kind)
        elif write.at.value == "":
            unknown = Forecast((), write.at, SCRIPT)
            forecast = _join_start(facts, forecast, write.at) if write.blocks else unknown
        elif facts.is_taken(facts.key, str(write.at.value)):
            value = facts.normalize(write.at.value)
            if not write.depends:
                forecast = Forecast((value,), write.at, SCRIPT)
            elif forecast.values and value not in forecast.values:
                forecast = Forecast((*forecast.values, value), write.at, SCRIPT)
    return forecast
