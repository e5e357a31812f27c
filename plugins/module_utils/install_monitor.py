# SPDX-License-Identifier: BSD-2-Clause
"""Let a host check itself in one run: read, plan, write, start the timer; and take it back."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial

from .core.edit import Edit
from .core.option_names import name_option
from .core.plan import Section, SectionPlan
from .core.reader import PolicyError
from .core.values import NamedTuple
from .host.booted import is_booted
from .host.program import run_program
from .node.paths import POLICY
from .node.plan import (
    BLACK_BOX,
    BOX_METRICS,
    FIRST_BOOT,
    HEALTH,
    METRICS,
    NAME,
    PROGRAM,
    SERVICE,
    TIMER,
    Monitor,
    plan_monitor,
)
from .node.zipapp_read import build_zipapp, is_of, read_library
from .places import PLACES
from .schema import choose_profile, load_policy, merge_profile
from .sessions.settle import apply_plans
from .write.lock import only_run
from .write.systemctl import reload_units, systemctl
from .write.temporary import read_written, remove_written

_UNIT = f"{NAME}.timer"
_FIRST_UNIT, _BOX_UNIT = (os.path.basename(path) for path in (FIRST_BOOT, BLACK_BOX))
_LARGEST = 64 * 2**20
_WRITES = re.compile(rf"--metrics (/\S+)/{re.escape(METRICS)}(?:\s|$)", re.MULTILINE)
_NOTHING = SectionPlan()
_BEGINS = 2.0


class Outcome(NamedTuple):
    """What a run did, or would do in check mode. ``timer`` is its state before and after."""

    edits: tuple[Edit, ...]
    timer: tuple[str, str]

    def as_result(self) -> dict[str, object]:
        """Return what a task returns."""
        return {
            "changed": bool(self.edits) or self.timer[0] != self.timer[1],
            "files": [edit.path for edit in self.edits],
            "diff": list(self._describe()),
        }

    def _describe(self) -> Iterator[dict[str, str]]:
        for edit in self.edits:
            header = {"before_header": edit.path, "after_header": edit.path}
            yield {**header, "before": _show(edit, edit.before), "after": _show(edit, edit.after)}
        if self.timer[0] != self.timer[1]:
            header = {"before_header": _UNIT, "after_header": _UNIT}
            yield {**header, "before": f"{self.timer[0]}\n", "after": f"{self.timer[1]}\n"}


def _show(edit: Edit, content: bytes | None) -> str:
    if content is None:
        return ""
    return f"{len(content)} bytes\n" if edit.hidden else content.decode("utf-8", "replace")


def install_monitor(
    policy: object, profile: str, wanted: Monitor, check_mode: bool = False
) -> Outcome:
    """Let this host check itself against a policy, or take that back.

    :raises PolicyError: With every reason to refuse; nothing was written then.
    :raises OSError: If something could not be written or started; all is as it was then.
    """
    if not wanted.absent:
        wanted = _with_policy(policy, profile, wanted._replace(python=find_python()))
    if check_mode:
        return _install(wanted, check_mode)
    with only_run():
        return _install(wanted, check_mode)


def _with_policy(policy: object, profile: str, wanted: Monitor) -> Monitor:
    """Return what is wanted, with the text of the whole policy, which was read as any other.

    :raises PolicyError: If it is refused, or there is no such folder.
    """
    loaded = load_policy(policy, profile)
    if wanted.textfiles and not os.path.isdir(wanted.textfiles):
        raise PolicyError(
            [
                f"{name_option('textfile_directory')}: {wanted.textfiles} is not a directory;"
                " install prometheus-node-exporter, name the one that it reads, or leave it empty"
            ]
        )
    policy, profile = choose_profile(policy, profile)
    whole = merge_profile(policy if isinstance(policy, dict) else {}, profile)
    of_runs = [place.path for place in PLACES if place.is_of_run]
    whole = {key: value for key, value in whole.items() if key not in of_runs}
    text = json.dumps(whole, indent=2) + "\n"
    load_policy(json.loads(text), "none")
    uses_net = any(key.startswith("net.") for key in loaded.get("kernel") or ())
    return wanted._replace(policy=text, uses_net=uses_net)


def find_python() -> str:
    """Return the path by which this Python survives its own upgrades."""
    general = "/usr/bin/python3"
    same = os.path.realpath(general) == os.path.realpath(sys.executable)
    return general if same else sys.executable


def _install(wanted: Monitor, check_mode: bool) -> Outcome:
    paths = [PROGRAM, HEALTH, POLICY, SERVICE, TIMER, FIRST_BOOT, BLACK_BOX]
    files = {path: content for path in paths for content in [_read(path)] if content is not None}
    program = b"" if wanted.absent else _build(wanted, files.get(PROGRAM, b""))
    plan = plan_monitor(wanted, program, files)
    if plan.problems:
        raise PolicyError(plan.problems)
    metrics = _plan_metrics(wanted, files.get(SERVICE, b""))
    before = _read_state()
    after = _want_state(wanted)
    if not check_mode and (plan.edits or metrics or before != after):
        if wanted.absent:
            _remove(plan, before != "absent")
        else:
            if FIRST_BOOT in files and not wanted.first_boot:
                systemctl("disable", "--quiet", _FIRST_UNIT)
            if BLACK_BOX in files and not wanted.black_box:
                systemctl("disable", "--quiet", *_now(), _BOX_UNIT)
            units = [_UNIT, *_list_others(wanted)]
            apply_plans({NAME: Section(plan, settle=partial(_start, plan, units))})
        for edit in metrics:
            remove_written(edit.path)
    return Outcome((*plan.edits, *metrics), (before, after))


def _plan_metrics(wanted: Monitor, service: bytes) -> tuple[Edit, ...]:
    """Return the removal of metrics that nobody writes any more; their folder may be anybody's.

    :param service: The unit that an earlier run wrote, which names where they are.
    """
    match = _WRITES.search(service.decode("utf-8", "replace"))
    named = {match[1] if match else "", wanted.textfiles}
    kept = {"", "" if wanted.absent else wanted.textfiles}
    kept_of_box = {"", wanted.textfiles if wanted.black_box and not wanted.absent else ""}
    paths = [f"{folder}/{METRICS}" for folder in sorted(named - kept)]
    paths += [f"{folder}/{BOX_METRICS}" for folder in sorted(named - kept_of_box)]
    found = ((path, read_written(path)) for path in paths)
    return tuple(Edit(path, content, None) for path, content in found if content is not None)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(_LARGEST)
    except FileNotFoundError:
        return None


def _build(wanted: Monitor, old: bytes) -> bytes:
    """Return the archive to install: the one that is there, where it is the same."""
    new = build_zipapp(read_library(), wanted.python)
    return old if is_of(old, new) else new


def _want_state(wanted: Monitor) -> str:
    """Return the state that is wanted, in the words of :func:`_read_state`."""
    if wanted.absent:
        return "absent"
    runs = "enabled, active" if is_booted() else "enabled"
    first = "; at first boot: enabled" if wanted.first_boot else ""
    box = f"; black box: {runs}" if wanted.black_box else ""
    return f"{runs}{first}{box}"


def _read_state() -> str:
    """Return whether the timer starts at boot, and whether it runs."""
    if not os.path.exists(TIMER):
        return "absent"
    state = _read_unit(_UNIT)
    if os.path.exists(FIRST_BOOT):
        state += f"; at first boot: {_ask('is-enabled', _FIRST_UNIT)}"
    if os.path.exists(BLACK_BOX):
        state += f"; black box: {_read_unit(_BOX_UNIT)}"
    return state


def _read_unit(unit: str) -> str:
    enabled = _ask("is-enabled", unit)
    return f"{enabled}, {_ask('is-active', unit)}" if is_booted() else enabled


def _list_others(wanted: Monitor) -> list[str]:
    """Return the units that are started at boot beside the timer."""
    others = ((wanted.first_boot, _FIRST_UNIT), (wanted.black_box, _BOX_UNIT))
    return [unit for is_wanted, unit in others if is_wanted]


def _now() -> list[str]:
    return ["--now"] if is_booted() else []


def _ask(verb: str, unit: str) -> str:
    _code, text = run_program(["/usr/bin/systemctl", verb, unit], 30.0)
    return text.strip().rpartition("\n")[2]


def _start(plan: SectionPlan, units: Sequence[str]) -> str:
    """Let systemd know the files, and start the timer; return why that failed, or nothing.

    :param units: What a boot shall start.
    """
    if not is_booted():
        return systemctl("enable", "--quiet", *units)
    trouble = reload_units() or systemctl("enable", "--quiet", *units)
    written = {edit.path for edit in plan.edits}
    for unit, sources in ((_UNIT, {TIMER}), (_BOX_UNIT, {PROGRAM, BLACK_BOX})):
        if unit in units and not trouble:
            trouble = systemctl("restart" if written & sources else "start", unit)
    return trouble or (_find_dead() if _BOX_UNIT in units else "")


def _find_dead() -> str:
    """Return why the black box does not run, once it had time to find out that it cannot."""
    time.sleep(_BEGINS)
    state = _ask("is-active", _BOX_UNIT)
    return (
        "" if state == "active" else f"{_BOX_UNIT} is {state}; journalctl -u {_BOX_UNIT} says why"
    )


def _remove(plan: SectionPlan, is_there: bool) -> None:
    """Stop what runs and remove the files.

    :raises OSError: If that could not be done; the timer runs again then.
    """
    if is_there:
        _stop()
    try:
        apply_plans({NAME: Section(plan)})
    except OSError:
        _start(_NOTHING, [_UNIT, *([_BOX_UNIT] if os.path.exists(BLACK_BOX) else [])])
        raise
    if is_booted():
        reload_units()


def _stop() -> None:
    """Stop the timer and its service, and forget its link; what is left is removed as files.

    :raises OSError: If it cannot be.
    """
    now = _now()
    others = ((FIRST_BOOT, _FIRST_UNIT), (BLACK_BOX, _BOX_UNIT))
    units = [_UNIT, *(unit for path, unit in others if os.path.exists(path))]
    trouble = systemctl("disable", "--quiet", *now, *units)
    if trouble:
        raise OSError(trouble)
    if now:
        systemctl("stop", f"{NAME}.service")
