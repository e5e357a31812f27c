# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what a host showed as JSON, and read it again."""

from __future__ import annotations

import re
from typing import Any

from mlhost_limits.why.facts import Facts, Group, Use
from mlhost_limits.why.kills import Line

KEPT = ("oom-kill:", "Killed process", "fork rejected", "file-max limit", "segfault at")
"""What is kept of the kernel's log: no other line counts."""

RECENT = 700.0
"""Seconds; of what is older, one line is kept to tell that there was some."""


def dump_facts(facts: Facts) -> dict[str, Any]:
    """Return facts as JSON has them, without a process: those of the corpus have ended."""
    memory = ("MemTotal", "SwapTotal", "CommitLimit", "Committed_AS", "overcommit")
    lines = [one for one in facts.log or () if any(word in one.text for word in KEPT)]
    lines = [one for one in lines if one.age <= RECENT or one is lines[-1]]
    return {
        "uid": facts.uid,
        "groups": [list(one) for one in facts.groups],
        "uses": {item: [list(use) for use in uses] for item, uses in facts.uses.items() if uses},
        "log": None if facts.log is None else [[round(line.age, 1), line.text] for line in lines],
        "log_is_whole": facts.log_is_whole,
        "memory": {name: facts.memory[name] for name in memory if name in facts.memory},
        "told": dict(facts.told),
        "home": facts.home,
        "age": facts.age,
        "pids": sorted(facts.pids),
        "request": facts.request,
        "has_oomd": facts.has_oomd,
        "oomd": facts.oomd,
        "started": facts.started,
        "here": facts.here,
        "path": facts.path,
    }


def load_facts(kept: dict[str, Any]) -> Facts:
    """Return the facts that were kept; of older ones, where and when it ran."""
    name = kept.get("home", "")
    if "OOMKilled" in kept["told"] and not name:
        kept = {**kept, "here": True}
    if kept["groups"] and not name:
        home = re.sub(r"^/sys/fs/cgroup(/memory|/pids)?", "", kept["groups"][0][1])
        kept = {**kept, "home": home, "age": 0.0, "started": RECENT}
    if name.endswith(".service") and "/" not in name:
        home = f"/system.slice/{name}"
        kept = {**kept, "home": home, "age": 0.0, "started": RECENT, "here": True}
    return Facts(
        **{
            **kept,
            "groups": [Group(*one) for one in kept["groups"]],
            "uses": {item: [Use(*use) for use in uses] for item, uses in kept["uses"].items()},
            "log": None if kept["log"] is None else [Line(*one) for one in kept["log"]],
            "pids": frozenset(kept["pids"]),
        }
    )
