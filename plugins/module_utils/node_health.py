# SPDX-License-Identifier: BSD-2-Clause
"""Slurm's HealthCheckProgram and Prolog: drain a node that falls short, and give it back.

A node is drained for what root decides alone. What a user did, and what could not be seen, are
lines on stderr, and neither of them gives a drained node back.

Slurm gives neither arguments. A prolog knows of a job (``SLURM_JOB_ID``), and must be quick: it
believes the last look at the node where that is fresh and found nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from .node.paths import POLICY
from .node.state_read import FOLDER, Verdict, read_verdict

PREFIX = "mlhost-limits: "
CLEAR = f"{FOLDER}/slurm-clear"
"""Is there while this node is known not to be drained by us, so that Slurm need not be asked."""

_LONGEST = 200
_TIME_LIMIT = 15.0


def main(environment: Mapping[str, str] | None = None, drain_on_error: bool = False) -> int:
    """Judge this node, and let Slurm know.

    Slurm drains a node of itself whose prolog fails. So a prolog fails where root's own doing falls
    short, and not where the check failed, unless that shall drain.

    :param drain_on_error: Whether a check that could not be made drains.
    :returns: 0 where it meets its policy, 1 where not; 2 where that could not be found out, but
        for a prolog.
    """
    known = os.environ if environment is None else environment
    is_prolog = "SLURM_JOB_ID" in known
    node = known.get("SLURMD_NODENAME") or os.uname().nodename.split(".")[0]
    try:
        return _judge(node, is_prolog, drain_on_error)
    except BaseException as exc:  # Whatever it is, it says nothing of the node.
        from .host.guarded import describe_trouble

        _warn(f"the check failed: {describe_trouble(exc)}")
        return 0 if is_prolog else 2


def _judge(node: str, is_prolog: bool, drain_on_error: bool) -> int:
    verdict = read_verdict(POLICY) if is_prolog else None
    if verdict is None or verdict.status != "pass":
        verdict = _look()
    for sentence in verdict.warnings:
        _warn(f"the node is not drained: {sentence}")
    if verdict.status == "fail" or (verdict.status == "error" and drain_on_error):
        reason = _shorten(verdict)
        sys.stdout.write(f"{reason}\n")
        _drain(node, reason)
        return 1 if verdict.status == "fail" else 2
    for sentence in verdict.failures:
        _warn(sentence)
    if verdict.status == "error":
        return 0 if is_prolog else 2
    if verdict.status == "pass" and not is_prolog:
        _give_back(node)
    return 0


def _warn(text: str) -> None:
    from .core.quote import one_line

    sys.stderr.write(f"{PREFIX}{one_line(text)}\n")


def _look() -> Verdict:
    """Look at this node.

    :raises BlockingIOError: If another look does not end, which drains nothing.
    """
    from .monitor import look_at_node  # Long, and seldom needed by a prolog.

    try:
        return look_at_node(POLICY).verdict
    except BlockingIOError:
        raise
    except (OSError, ValueError) as exc:
        return Verdict("error", (f"the check failed: {exc}",))


def _shorten(verdict: Verdict) -> str:
    """Return the reason that Slurm keeps, on one line."""
    from .core.quote import one_line

    more = f" (and {len(verdict.failures) - 1} more)" if len(verdict.failures) > 1 else ""
    told = one_line(verdict.failures[0])
    room = _LONGEST - len(PREFIX) - len(more)
    return PREFIX + (told if len(told) <= room else f"{told[: room - 1]}…") + more


def _drain(node: str, reason: str) -> None:
    """Drain the node unless it is already: whoever did so had a reason, and it stays."""
    if os.path.exists(CLEAR):
        os.unlink(CLEAR)
    state, _reason = _ask_state(node)
    if not state.startswith("drain"):
        _scontrol(node, "state=drain", f"reason={reason}")


def _give_back(node: str) -> None:
    """Resume the node if it was drained with a reason of ours."""
    if os.path.exists(CLEAR):
        return
    state, reason = _ask_state(node)
    if state.startswith("drain") and reason.startswith(PREFIX):
        if not _scontrol(node, "state=resume"):
            return
    elif not state:
        return  # Slurm did not say.
    with open(CLEAR, "w", encoding="ascii"):
        pass


def _ask_state(node: str) -> tuple[str, str]:
    """Return the state of a node and the reason for it; nothing where Slurm does not say."""
    from .host.program import run_program
    from .slurm.read import find_program

    program = find_program("sinfo")
    if program is None:
        return "", ""
    words = [program, "-h", "-N", "-n", node, "-o", "%T|%E"]
    code, text = run_program(words, _TIME_LIMIT, with_errors=False)
    line = text.splitlines()[0] if code == 0 and text.strip() else ""
    state, _bar, reason = line.partition("|")
    return state, reason


def _scontrol(node: str, *words: str) -> bool:
    from .host.program import last_line, run_program
    from .slurm.read import find_program

    program = find_program("scontrol")
    if program is None:
        sys.stderr.write("mlhost-limits: scontrol is not installed, so Slurm was not told\n")
        return False
    code, text = run_program([program, "update", f"nodename={node}", *words], _TIME_LIMIT)
    if code:
        sys.stderr.write(f"mlhost-limits: Slurm was not told: {last_line(text)}\n")
    return code == 0


if __name__ == "__main__":
    raise SystemExit(main())
