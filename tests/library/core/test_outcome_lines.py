# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run did is told in a few lines: done, to do, short, old, in this order."""

from __future__ import annotations

from typing import Any

from mlhost_limits.core.outcome_lines import format_outcome

NOTHING: dict[str, Any] = {
    "changed": False,
    **dict.fromkeys(("files", "sysctls", "shortfalls", "notes", "restarted"), ()),
    **dict.fromkeys(("restart_required", "old_limits", "in_effect", "diff", "raised"), ()),
}
ALL = {
    **NOTHING,
    "changed": True,
    "files": ["/etc/a", "/etc/b"],
    "sysctls": [{"key": "vm.x", "before": "1\t2", "after": "3 4"}],
    "restarted": ["docker.service"],
    "restart_required": ["slurmd.service"],
    "shortfalls": ["/etc/c:3 beats ours"],
    "raised": ["session:bob nofile 9:9 -> 65536:65536"],
    "old_limits": ["session-3.scope of alice"],
    "notes": ["a note"],
    "diff": [
        {"before_header": "/etc/a (absent)", "after_header": "/etc/a", "before": "", "after": "x\n"}
    ],
}


def test_a_run_says_what_it_did_and_what_is_left() -> None:
    assert format_outcome(ALL) == [
        "changed    /etc/a",
        "           /etc/b",
        "set        vm.x 1\\t2 -> 3 4",
        "restarted  docker.service",
        "raised     session:bob nofile 9:9 -> 65536:65536",
        "restart    slurmd.service, before all of it is in effect",
        "short      /etc/c:3 beats ours",
        "old        session-3.scope of alice",
        "note       a note",
    ]


def test_a_dry_run_says_what_would_be_done() -> None:
    told = format_outcome(ALL, is_check=True, shows_diff=True)
    assert told[:4] == [
        "would change  /etc/a",
        "              /etc/b",
        "would set     vm.x 1\\t2 -> 3 4",
        "--- /etc/a (absent)",
    ]
    assert told[4:7] == ["+++ /etc/a", "@@ -0,0 +1 @@", "+x"]
    assert told[7] == "would restart docker.service"


def test_nothing_is_said_to_be_nothing() -> None:
    assert format_outcome(NOTHING) == ["nothing to change"]
