# SPDX-License-Identifier: BSD-2-Clause
"""Tell node-problem-detector of Kubernetes how this node is, as its custom plugins do.

The contract: exit status 0 where all is well, 1 where there is a problem, any other where that is
not known; and one line of at most 80 bytes on stdout, in time (custom_plugin_monitor.md there).
A problem is what root decides and falls short; what a user did is none of the node's.
"""

from __future__ import annotations

from .core.quote import one_line
from .node.paths import POLICY
from .node.state_read import Verdict, read_verdict

OK, PROBLEM, NOT_KNOWN = 0, 1, 2
LONGEST = 80
"""Bytes of the line; node-problem-detector cuts what is longer (max_output_length)."""

_SECONDS = 4.0
"""For a look of its own: the detector ends what takes longer than five."""


def tell_detector(policy: str = POLICY) -> tuple[int, str]:
    """Return the exit status and the line.

    The last look of the timer is believed while it is fresh and of this policy; else this looks.
    """
    try:
        return _tell(policy)
    except Exception as exc:  # Whatever it is, it says nothing of the node.
        from .host.guarded import describe_trouble

        return NOT_KNOWN, cut_bytes(one_line(f"the check failed: {describe_trouble(exc)}"), LONGEST)


def _tell(policy: str) -> tuple[int, str]:
    verdict = read_verdict(policy)
    if verdict is None or verdict.status == "error":
        verdict = _look(policy)
    if verdict.status == "pass":
        return OK, "limits are as the policy asks"
    more = f" (+{len(verdict.failures) - 1})" if len(verdict.failures) > 1 else ""
    told = cut_bytes(one_line(verdict.failures[0]), LONGEST - len(more)) + more
    return (PROBLEM if verdict.status == "fail" else NOT_KNOWN), told


def _look(policy: str) -> Verdict:
    from .monitor import look_at_node  # Long, and seldom needed.

    try:
        return look_at_node(policy, seconds=_SECONDS, patience=0.5).verdict
    except (OSError, ValueError) as exc:
        told = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
        return Verdict("error", (f"the check failed: {told}",))


def cut_bytes(text: str, most: int) -> str:
    """Return a text whose UTF-8 has no more than so many bytes, an ellipsis at its end if cut."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most:
        return raw.decode("utf-8")
    return f"{raw[: most - 3].decode('utf-8', 'ignore')}…"
