# SPDX-License-Identifier: BSD-2-Clause
"""Say in metrics what a look at a node has found: requirements, headroom, and the run itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Tuple

from ..core.finding import FAIL, LATER, PASS, UNKNOWN, WAIVED, Finding
from ..core.values import UNLIMITED, NamedTuple
from .load import MOST_GROUPS, Group, Load

TYPE_CHECKING = False
if TYPE_CHECKING:
    Key = Tuple[str, str, str, str]
    Sample = tuple[Mapping[str, str], float]

_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
_STEERS = re.compile(r'[\\"\n]')


class Metric(NamedTuple):
    """A gauge: what it means, and its value for each set of labels."""

    name: str
    help: str
    samples: tuple[Sample, ...]


def format_metrics(metrics: Iterable[Metric]) -> str:
    """Return the text of all metrics that have a value."""
    return "".join(_format(metric) for metric in metrics if metric.samples)


def _format(metric: Metric) -> str:
    told = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
    head = f"# HELP {metric.name} {told}\n# TYPE {metric.name} gauge\n"
    return head + "".join(
        f"{metric.name}{_format_labels(labels)} {_format_value(value)}\n"
        for labels, value in metric.samples
    )


def _format_labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escape(text: str) -> str:
    """Return a label's value as it must be written; what is not UTF-8 becomes a question mark."""
    plain = text.encode("utf-8", "replace").decode("utf-8")
    return _STEERS.sub(lambda match: _ESCAPED[match[0]], plain)


def _format_value(value: float) -> str:
    if value == UNLIMITED:
        return "+Inf"
    return repr(value) if isinstance(value, float) else str(int(value))


STATES = (PASS, LATER, WAIVED, FAIL, UNKNOWN)
_PREFIX = "mlhost_limits_"


class Run(NamedTuple):
    """One look at a node. ``success`` is false where the check failed to its end.

    ``succeeded_at`` is when one last could, 0 where none has since the boot.
    """

    at: float
    seconds: float
    cpu_seconds: float
    success: bool
    succeeded_at: float = 0.0


class Files(NamedTuple):
    """fs.file-nr: file handles in use, and how many there may be."""

    allocated: int
    maximum: int


def describe_node(
    findings: Sequence[Finding],
    groups: Sequence[Group],
    files: Files | None,
    run: Run,
    name_user: Callable[[int], str],
) -> Iterator[Metric]:
    """Yield every metric.

    :param groups: The processes by user and unit, the worst first.
    """
    yield from _describe_requirements(findings)
    yield from _describe_groups(groups[:MOST_GROUPS], name_user)
    yield from _describe_totals(groups, files)
    yield from describe_run(run)


def _name(text: str) -> str:
    return _PREFIX + text


def _describe_requirements(findings: Sequence[Finding]) -> Iterator[Metric]:
    told: dict[Key, str] = {}
    causes: dict[tuple[Key, str], None] = {}
    for finding in findings:
        wanted, state = finding.requirement, finding.state
        key = (wanted.place, wanted.item, wanted.bound, finding.owner)
        told[key] = max(told.get(key, PASS), state, key=_SEVERITY.index)
        causes.update(dict.fromkeys((key, cause.code) for cause in finding.causes))
    yield Metric(
        _name("requirement_state"),
        "Whether a requirement of the policy is met: 1 for its state, 0 for the others; later "
        "passes now and will fail after a restart or a boot, waived falls short and may; owner is "
        "the user whose own file or process decides it, where root does not.",
        tuple(
            ({**_label(key), "state": state}, int(state == found))
            for key, found in told.items()
            for state in STATES
        ),
    )
    yield Metric(
        _name("requirement_cause_info"),
        "Why a requirement is not met, or will not be: the code of the cause, always 1.",
        tuple(({**_label(key), "code": code}, 1) for key, code in causes),
    )
    for name, text, is_owned in (
        ("requirements", "Requirements that root decides, in each state.", False),
        ("user_requirements", "Requirements that users decide themselves, in each state.", True),
    ):
        states = [state for key, state in told.items() if bool(key[3]) == is_owned]
        samples = tuple(({"state": state}, states.count(state)) for state in STATES)
        yield Metric(_name(name), text, samples)


_SEVERITY = (PASS, WAIVED, LATER, UNKNOWN, FAIL)
"""Of two findings that bear the same labels, what is worse is told."""


def _label(key: Key) -> dict[str, str]:
    """Return the labels of a requirement; without an owner, the one of that name is left out."""
    labels = dict(zip(("place", "item", "bound", "owner"), key))
    return {name: value for name, value in labels.items() if value or name != "owner"}


def _describe_groups(groups: Sequence[Group], name_user: Callable[[int], str]) -> Iterator[Metric]:
    rows: list[tuple[Mapping[str, str], Group]] = [
        ({"user": name_user(group.uid), "unit": group.unit}, group) for group in groups
    ]
    full = [(labels, group.fullest) for labels, group in rows if group.fullest]
    worst = "of the process of a user in a unit that has the largest part of its descriptors open"
    yield Metric(
        _name("worst_process_open_fds"),
        f"Open descriptors {worst}.",
        tuple((labels, load.open_files or 0) for labels, load in full),
    )
    yield Metric(
        _name("worst_process_max_fds"),
        f"Soft limit of descriptors {worst}.",
        tuple((labels, load.nofile) for labels, load in full),
    )
    yield Metric(
        _name("worst_process_info"),
        f"Name and id {worst}, always 1.",
        tuple(({**labels, **_identify(load)}, 1) for labels, load in full),
    )
    yield from _describe_memory(rows)


def _describe_memory(rows: Sequence[tuple[Mapping[str, str], Group]]) -> Iterator[Metric]:
    heavy = [(labels, group) for labels, group in rows if group.locked or group.pinned]
    yield Metric(
        _name("locked_memory_bytes"),
        "Memory that the processes of a user in a unit have locked (VmLck).",
        tuple((labels, group.locked) for labels, group in heavy),
    )
    yield Metric(
        _name("pinned_memory_bytes"),
        "Memory that devices hold of the processes of a user in a unit (VmPin).",
        tuple((labels, group.pinned) for labels, group in heavy),
    )
    most = "of the process of a user in a unit that holds most of the memory that it may lock"
    yield Metric(
        _name("worst_process_locked_memory_bytes"),
        f"Memory locked, or held by devices where that is more, {most}.",
        tuple((labels, max(g.heaviest.locked, g.heaviest.pinned)) for labels, g in heavy),
    )
    yield Metric(
        _name("worst_process_locked_memory_limit_bytes"),
        f"Soft limit of locked memory {most}.",
        tuple((labels, g.heaviest.memlock) for labels, g in heavy),
    )


def _identify(load: Load) -> Mapping[str, str]:
    return {"process": load.name, "pid": str(load.pid)}


def _describe_totals(groups: Sequence[Group], files: Files | None) -> Iterator[Metric]:
    totals = [
        ("processes", "Processes that were looked at.", sum(g.processes for g in groups)),
        ("process_groups", "Pairs of user and unit that have processes.", len(groups)),
    ]
    if files:
        totals += [
            ("file_handles_allocated", "File handles in use (fs.file-nr).", files.allocated),
            ("file_handles_max", "File handles that there may be (fs.file-max).", files.maximum),
        ]
    for name, text, value in totals:
        yield Metric(_name(name), text, (({}, value),))


def describe_run(run: Run) -> Iterator[Metric]:
    """Yield what is to be said of a look, also where it found nothing out."""
    for name, text, value in (
        ("last_run_timestamp_seconds", "When the node was last looked at.", run.at),
        ("last_run_duration_seconds", "How long that took.", run.seconds),
        ("last_run_cpu_seconds", "Processor time that it took.", run.cpu_seconds),
        ("last_run_success", "Whether the check could be made to its end.", int(run.success)),
        (
            "last_success_timestamp_seconds",
            "When a check was last made to its end; 0 where none was since the boot.",
            run.succeeded_at,
        ),
    ):
        yield Metric(_name(name), text, (({}, value),))
