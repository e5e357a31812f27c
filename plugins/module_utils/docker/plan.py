# SPDX-License-Identifier: BSD-2-Clause
"""Plan what daemon.json must say so that new containers get what the policy requires."""

from __future__ import annotations

from ..containers.policy import ContainerPolicy
from ..core.edit import Edit
from ..core.plan import SectionPlan
from ..core.values import UNLIMITED, NamedTuple
from .daemon_json import DockerDefaults, decode_daemon_json
from .dockerd_flags import CONFIG_PATH, Flag
from .merge import find_unstated, merge_daemon_json
from .problems import find_daemon_json_problems
from .record import (
    Record,
    extend_record,
    find_dropped,
    find_record_path,
    format_record,
    parse_record,
    undo,
)

_NO_TASKS = (
    "containers.docker.tasks: checked and not set, because daemon.json has no key for it; state"
    " TasksMax of a slice, or --pids-limit of a container"
)


class DockerState(NamedTuple):
    """What is known of the daemon; ``content`` is ``None`` where daemon.json is absent.

    ``wait`` says what must happen before it takes effect, empty where dockerd runs. ``record`` is
    what earlier runs remember of it, see :mod:`.record`.
    """

    content: bytes | None = None
    path: str = CONFIG_PATH
    flags: tuple[Flag, ...] = ()
    wait: str = ""
    record: bytes | None = None


def plan_docker(
    policy: ContainerPolicy, state: DockerState, nr_open: int | None, absent: bool
) -> SectionPlan:
    """Return the edits of daemon.json and its record; every key that is not ours keeps its bytes.

    What an earlier run has set and the policy does not ask for any more goes back to what it was.

    :param nr_open: The lowest fs.nr_open that will be in force.
    """
    wanted = DockerDefaults(policy.stated, policy.shm_size)
    notes = (_NO_TASKS,) if policy.tasks and not absent else ()
    plan = _plan(wanted, state, nr_open, absent or not any(wanted))
    return plan._replace(notes=(*plan.notes, *notes))


def _plan(
    wanted: DockerDefaults, state: DockerState, nr_open: int | None, absent: bool
) -> SectionPlan:
    try:
        record = _read_record(state)
        if absent and record is None:
            return SectionPlan()  # Nothing in the file is ours.
        content = state.content
        text = None if content is None else decode_daemon_json(content, state.path)
        if absent and record:
            original = undo(text, record, state.path)
            return SectionPlan(_plan_edits(state, original, None))
        return _plan_statement(
            text, state, wanted, record, UNLIMITED if nr_open is None else nr_open
        )
    except ValueError as exc:
        return SectionPlan(problems=(str(exc),))


def _read_record(state: DockerState) -> Record | None:
    if state.record is None:
        return None
    return parse_record(state.record.decode("utf-8", "replace"), find_record_path(state.path))


def _plan_statement(
    text: str | None,
    state: DockerState,
    wanted: DockerDefaults,
    record: Record | None,
    nr_open: int,
) -> SectionPlan:
    base, before = text, record
    if record and find_dropped(text, record, wanted, state.path):
        base, before = undo(text, record, state.path), None
    now = base or ""
    problems = find_daemon_json_problems(now, state.path, wanted, state.flags, nr_open)
    reasons = tuple(problem.text for problem in problems if problem.stops)
    if reasons:
        return SectionPlan(problems=reasons)
    merged = merge_daemon_json(now, wanted)
    notes = tuple(problem.text for problem in problems)
    if state.wait:
        notes += (f"{state.path}: takes effect once {state.wait}",)
    if merged == now:
        edits = () if base == text else _plan_edits(state, base, None)
        return SectionPlan(edits, notes=notes)
    extended = extend_record(before, base, merged, find_unstated(now, wanted))
    return SectionPlan(_plan_edits(state, merged, extended), notes=notes)


def _plan_edits(state: DockerState, text: str | None, record: Record | None) -> tuple[Edit, ...]:
    """Return the edits that change something; the record is written first and removed last."""
    after = None if text is None else text.encode("utf-8")
    kept = None if record is None else format_record(record).encode("ascii")
    path = find_record_path(state.path)
    file = Edit(state.path, state.content, after, kind="json")
    memory = Edit(path, state.record, kept, mode=0o600, kind="json", hidden=True)
    edits = (file, memory) if kept is None else (memory, file)
    return tuple(edit for edit in edits if edit.changes)
