# SPDX-License-Identifier: BSD-2-Clause
"""Look at this node without a controller: check it, sum up its processes, keep what was found."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import Tuple

from .check_within import check_within
from .core.finding import FAIL, PASS, UNKNOWN, Finding, find_unlooked, is_short_by_root
from .core.policy import CheckOptions
from .core.report import format_failures, format_report
from .core.values import NamedTuple
from .host.guarded import run_guarded
from .host.scratch import find_parent, sweep
from .host.users import name_user
from .node.load import group_loads
from .node.metrics import Run, describe_node, describe_run, format_metrics
from .node.state_read import FOLDER, STATE, Kept, Verdict, format_state, read_kept, stamp_policy
from .node.usage_read import find_loads, find_usages, read_files
from .places import PLACES, look_at_host
from .policy_file import read_policy_within
from .result import make_result
from .schema import load_policy
from .write.lock import only_run
from .write.temporary import replace_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    Key = Tuple[str, str, str]


class Judgment(NamedTuple):
    """``status`` is pass, fail or unknown; the sentences are one for each place.

    ``short`` are place, item and bound of what fails, or what failed and is not seen to be mended.
    """

    status: str
    failures: tuple[str, ...]
    warnings: tuple[str, ...]
    short: tuple[Key, ...]


def judge_node(findings: Sequence[Finding], before: Collection[Key]) -> Judgment:
    """Judge a node by its findings.

    What users did themselves is a warning. What failed before and is unknown now is not mended:
    a user may be what keeps it from being seen.

    :param before: What fell short at the last look.
    """
    failing = [one for one in findings if is_short_by_root(one)]
    owned = [one for one in findings if one.status == FAIL and one.owner]
    warnings = tuple(format_failures(owned))
    if failing:
        keys = tuple(dict.fromkeys(map(_key, failing)))
        return Judgment(FAIL, tuple(format_failures(failing)), warnings, keys)
    unseen = dict.fromkeys(_key(one) for one in findings if one.status == UNKNOWN)
    still = tuple(key for key in unseen if key in before)
    if still:
        told = (f"{place}: {item} fell short, and cannot be seen" for place, item, _bound in still)
        return Judgment(UNKNOWN, tuple(dict.fromkeys(told)), warnings, still)
    return Judgment(PASS, (), warnings, ())


def _key(finding: Finding) -> Key:
    wanted = finding.requirement
    return wanted.place, wanted.item, wanted.bound


LOCK = f"{FOLDER}/node.lock"
RESULT = f"{FOLDER}/result.json"
"""What the last look that was made found, for root to carry to where all hosts are judged."""

PATIENCE = 30.0
DEADLINE = 80.0
"""Seconds that a look may take; with the wait for another one, less than systemd's two minutes."""

_SHARE = 0.8  # Of the deadline, for the look itself.


class NodeLook(NamedTuple):
    """What one look found: for people, and what is to be made of it."""

    lines: list[str]
    verdict: Verdict


class _Result(NamedTuple):
    """What the child that looks has to say; all of it fits JSON."""

    lines: list[str]
    status: str
    failures: list[str]
    warnings: list[str]
    short: list[list[str]]
    metrics: str
    result: str


def look_at_node(
    policy_file: str,
    metrics: str = "",
    canary: str = "never",
    seconds: float = DEADLINE,
    patience: float = 0.0,
) -> NodeLook:
    """Check this node, keep the verdict and the result, and write metrics where a path is given.

    Looks one at a time, each in a child. Where that ends in whatever way before it has looked, the
    verdict is ``error``, and the metrics tell that and nothing that was true before.

    :param patience: Seconds to wait for another look; by default PATIENCE.
    :raises OSError: If a file cannot be written, or another look does not end.
    """
    os.makedirs(FOLDER, 0o755, exist_ok=True)
    with only_run(LOCK, patience or PATIENCE):
        kept, begun = read_kept(policy_file, STATE), time.monotonic()
        task = partial(_look, policy_file, canary, kept, seconds)
        value, problem = run_guarded(task, seconds)
        if problem:
            text = _describe_failure(time.monotonic() - begun, kept)
            verdict = Verdict("error", (f"the check failed: {problem}",))
            _keep(format_state(verdict, _stamp(policy_file), kept=kept), metrics, text)
            return NodeLook([], verdict)
        found = _Result(*value)
        verdict = Verdict(found.status, tuple(found.failures), tuple(found.warnings))
        stamp = _stamp(policy_file)
        short = tuple((one, two, three) for one, two, three in found.short)
        state = format_state(verdict, stamp, kept=Kept(time.time(), short, tuple(stamp)))
        _keep(state, metrics, found.metrics)
        replace_text(RESULT, found.result, mode=0o600)
    return NodeLook(found.lines, verdict)


def _keep(state: str, metrics: str, text: str) -> None:
    """Write the state, and the metrics even where that fails: they tell the time of this look."""
    try:
        replace_text(STATE, state)
    finally:
        if metrics:
            replace_text(metrics, text)


def _stamp(policy_file: str) -> list[int]:
    try:
        return stamp_policy(policy_file)
    except OSError:
        return []  # It belongs to no policy, so that nobody believes it.


def _describe_failure(seconds: float, kept: Kept) -> str:
    run = Run(time.time(), seconds, 0.0, False, kept.success)
    return format_metrics(describe_run(run))


def _look(policy_file: str, canary: str, kept: Kept, seconds: float) -> _Result:
    """Look at this node. Runs in a child.

    :raises OSError, ValueError: If the policy cannot be read, or the check cannot be made.
    """
    begun = time.monotonic()
    read = read_policy_within(policy_file, _SHARE * seconds)
    policy = load_policy(read.root, "none", told=read.problems)
    sweep(find_parent())
    usages = tuple(find_usages())
    limits = {one.process.pid: one.limits for one in usages}
    look = look_at_host([one.process for one in usages], limits)
    sections = tuple(place.name for place in PLACES if not place.is_of_run)
    options = CheckOptions(sections, canary=canary, time_limit=_SHARE * seconds)
    result = check_within(policy, options, look)
    findings = result.findings
    judged = judge_node(findings, kept.short)
    unlooked = find_unlooked(findings)
    if judged.status == PASS and unlooked:
        seen = unlooked[0]
        raise ValueError(f"{seen.requirement.place}: {seen.observation.reason}")
    now = time.time()
    run = Run(now, time.monotonic() - begun, time.process_time(), True, now)
    groups = group_loads(find_loads(usages))
    metrics = format_metrics(describe_node(findings, groups, read_files(), run, name_user))
    return _Result(
        format_report(findings),
        judged.status,
        list(judged.failures),
        list(judged.warnings),
        [list(key) for key in judged.short],
        metrics,
        json.dumps(make_result(result)) + "\n",
    )
