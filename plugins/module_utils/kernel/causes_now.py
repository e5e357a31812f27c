# SPDX-License-Identifier: BSD-2-Clause
"""Say why the running value of a sysctl is not the good one that a boot would give."""

from __future__ import annotations

from ..core.cause import Cause, Remedy, cite
from ..core.edit import HEADER
from ..core.finding import Requirement
from ..core.quote import one_line
from ..core.values import Declaration
from .model import (
    FILE,
    KernelFacts,
    apply_files,
    find_module,
    find_start,
    predict_boot,
    predict_reload,
)
from .remedies import (
    cite_line,
    compare_lines,
    find_rivals,
    find_value,
    fix_by_comment,
    list_lines,
    locate_file,
)

_NEAR = 0.95
_GIVEN_AS_THEY_COME = "vm.nr_hugepages"  # The kernel gives as many as it finds memory for.
_SET_NOW = Remedy("")


def blame_absence(key: str) -> Cause:
    """Say why a kernel has no such key."""
    module = find_module(key)
    text = f"this kernel has no {one_line(key)}"
    if not module:
        remedy = Remedy(f"take {key} out of the policy, or boot a kernel that has it")
        return Cause("sysctl-key-absent", text, remedy)
    keep = f"echo {module} >> /etc/modules-load.d/{module}.conf"
    commands = (("modprobe", module), ("sh", "-c", keep))
    remedy = Remedy(f"load {module}, now and at boot", commands)
    return Cause("sysctl-key-absent", f"{text}: {module} is not loaded", remedy)


def blame_container(wanted: Requirement) -> Cause:
    """Say that a container cannot set what belongs to its host."""
    text = f"/proc/sys is read-only here, so that {wanted.item} is what the container's host has"
    return Cause("sysctl-read-only", text, Remedy(f"set {wanted.item} on the container's host"))


def find_exhaustion(wanted: Requirement, facts: KernelFacts) -> list[Cause]:
    """Name that fs.file-max is reached: whatever opens a file fails now, but for root."""
    running, used = facts.running or "", facts.open_files
    if wanted.item != "fs.file-max" or used is None or not running.isdigit():
        return []
    if used < int(running) * _NEAR:
        return []
    text = f"{used} files are open and fs.file-max allows {running}: opens fail with ENFILE"
    command = ("sysctl", "-w", f"fs.file-max={find_value(wanted, facts.running)}")
    return [Cause("sysctl-file-max-reached", text, Remedy("raise it at once", (command,)))]


def blame_running(wanted: Requirement, facts: KernelFacts) -> list[Cause]:
    """Say what changed the running value, or that a good file was never loaded.

    The remedies do not set the value: that is said once, for all causes.
    """
    running = facts.normalize(facts.running or "")
    boot, reload = predict_boot(facts), predict_reload(facts)
    if reload.by is not None and reload.kind == FILE and reload.values == (running,):
        return [_blame_reload(wanted, reload.by, facts)]
    tuned = facts.tuned.lines.get(facts.key) if facts.tuned else None
    if tuned is not None and facts.normalize(tuned.value) == running:
        text = f"{cite(tuned)}, of the active profile of tuned, has set it"
        return [Cause("sysctl-tuned-wins", text, _SET_NOW, tuned)]
    by = boot.by
    if by is None or boot.kind != FILE:
        gives = f"a boot sets {boot.values[0]}"
        text = f"{facts.key} was changed to {one_line(running)} after the boot; {gives}"
        return [Cause("sysctl-changed-by-hand", text, _SET_NOW)]
    line, name = locate_file(by, facts), cite_line(by, facts)
    if _is_unloaded(running, by, facts):
        text = f"{name} has not been loaded since it was written"
        return [Cause("sysctl-not-loaded", text, _SET_NOW, line)]
    if facts.key.startswith(_GIVEN_AS_THEY_COME):
        return []
    text = f"{facts.key} was changed to {one_line(running)} after {name} was loaded"
    return [Cause("sysctl-changed-by-hand", text, _SET_NOW, None, (line,))]


def _blame_reload(wanted: Requirement, by: Declaration, facts: KernelFacts) -> Cause:
    """Blame the line that ``sysctl --system`` reads last, and that a boot does not."""
    line = locate_file(by, facts)
    rivals = find_rivals(wanted, by, facts)
    code = compare_lines(line, rivals[-1]) if rivals else "sysctl-later-file-wins"
    text = f"{cite_line(by, facts)} counts for sysctl --system, though not at boot"
    fix = fix_by_comment(line, facts, find_value(wanted, facts.running))
    return Cause(code, text, fix.remedy, line, rivals)


def _is_unloaded(running: str, by: Declaration, facts: KernelFacts) -> bool:
    """Tell whether a file may not have been applied yet: the value is what it was without it.

    Our own file is written together with the running value.
    """
    if by.path not in facts.fresh or facts.files[by.path].startswith(HEADER):
        return False
    files = {path: text for path, text in facts.files.items() if path not in facts.fresh}
    before = apply_files(facts._replace(files=files), find_start(facts))
    others = [facts.normalize(one.value) for one in list_lines(facts) if one != by]
    return not before.values or running in (*before.values, *others)
