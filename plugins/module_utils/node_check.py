# SPDX-License-Identifier: BSD-2-Clause
"""Look at this node without a controller: check it, sum up its processes, keep what was found."""

from __future__ import annotations

import json
import os
import time
from typing import NamedTuple

from .apply.lock import only_run
from .apply.textfile import replace_text
from .check_host import check_host
from .check_options import SECTIONS, Options
from .policy.finding import count_statuses
from .policy.metrics_text import format_metrics
from .policy.node_load import group_loads
from .policy.node_metrics import Run, describe_node
from .policy.report import format_failures, format_report
from .policy.schema import load_policy
from .probe.evidence import Evidence
from .probe.node_state import FOLDER, STATE, Verdict, format_state, stamp_policy
from .probe.scratch import PARENT, find_abandoned, remove_scratch
from .probe.usage import find_loads, read_files
from .probe.users import name_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .policy.finding import Finding
    from .policy.node_load import Group

LOCK = f"{FOLDER}/node.lock"
PATIENCE = 30.0
_RUN = "training"


class Look(NamedTuple):
    """What one look found. ``trouble`` says why the check could not be made to its end."""

    findings: list[Finding]
    groups: list[Group]
    trouble: str

    @property
    def lines(self) -> list[str]:
        """What was found, for people."""
        return format_report(self.findings)

    @property
    def verdict(self) -> Verdict:
        """Whether the node falls short, and what is to be said of it."""
        if self.trouble:
            return Verdict("error", (f"the check itself failed: {self.trouble}",))
        counts = count_statuses(self.findings)
        return Verdict("fail" if counts["fail"] else "pass", tuple(format_failures(self.findings)))


def look_at_node(policy_file: str, metrics: str = "", canary: str = "never") -> Look:
    """Check this node, and keep the verdict; and write metrics where a path is given.

    Looks one at a time. Without a policy nothing is written, so that what was there stays.

    :raises OSError: If a file cannot be read or written, or another look does not end.
    :raises ValueError: If the policy is refused.
    """
    os.makedirs(FOLDER, 0o755, exist_ok=True)
    with only_run(LOCK, PATIENCE):
        stamp = stamp_policy(policy_file)
        policy = load_policy(read_json(policy_file), "none")
        begun, spent = time.monotonic(), time.process_time()
        for folder in find_abandoned(PARENT):
            remove_scratch(folder)
        evidence = Evidence()
        usages = evidence.usages
        findings: list[Finding] = []
        trouble = ""
        options = Options(tuple(name for name in SECTIONS if name != _RUN), canary=canary)
        try:
            findings = check_host(policy, options, evidence).findings
        except (OSError, ValueError) as exc:
            trouble = str(exc)
        look = Look(findings, group_loads(find_loads(usages)), trouble)
        run = Run(time.time(), time.monotonic() - begun, time.process_time() - spent, not trouble)
        replace_text(STATE, format_state(look.verdict, stamp))
        if metrics:
            described = describe_node(findings, look.groups, read_files(), run, name_user)
            replace_text(metrics, format_metrics(described))
    return look


def read_json(path: str) -> object:
    """Return what a file of JSON holds.

    :raises ValueError: If it holds none.
    """
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"{path}: holds too many nested values") from None
    except ValueError as exc:
        raise ValueError(f"{path}: is no JSON ({exc})") from None
