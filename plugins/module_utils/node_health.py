# SPDX-License-Identifier: BSD-2-Clause
"""Slurm's HealthCheckProgram and Prolog: drain a node that falls short, and give it back.

Slurm gives neither arguments. A prolog knows of a job (``SLURM_JOB_ID``), and must be quick: it
believes the last look at the node where that is fresh and found nothing.
"""

from __future__ import annotations

import os
import sys

from .policy.node_paths import POLICY
from .probe.node_state import FOLDER, Verdict, read_verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "mlhost-limits: "
CLEAR = f"{FOLDER}/slurm-clear"
"""Is there while this node is known not to be drained by us, so that Slurm need not be asked."""

_LONGEST = 200
_TIME_LIMIT = 15.0


def main(environment: Mapping[str, str] | None = None) -> int:
    """Judge this node, and let Slurm know.

    :returns: 0 where it meets its policy, 1 where not; 2 where that could not be found out.
    """
    known = os.environ if environment is None else environment
    is_prolog = "SLURM_JOB_ID" in known
    node = known.get("SLURMD_NODENAME") or os.uname().nodename.split(".")[0]
    verdict = read_verdict(POLICY) if is_prolog else None
    if verdict is None or verdict.status != "pass":
        try:
            verdict = _look()
        except BlockingIOError as exc:  # That says nothing of the node.
            sys.stderr.write(f"mlhost-limits: {exc}\n")
            return 2
    if verdict.status != "pass":
        reason = _shorten(verdict)
        sys.stdout.write(f"{reason}\n")
        _drain(node, reason)
        return 1 if verdict.status == "fail" else 2
    if not is_prolog:
        _give_back(node)
    return 0


def _look() -> Verdict:
    """Look at this node.

    :raises BlockingIOError: If another look does not end.
    """
    from .node_check import look_at_node  # Long, and seldom needed by a prolog.

    try:
        return look_at_node(POLICY).verdict
    except BlockingIOError:
        raise
    except (OSError, ValueError) as exc:
        return Verdict("error", (f"the check itself failed: {exc}",))


def _shorten(verdict: Verdict) -> str:
    """Return the reason that Slurm keeps, on one line."""
    from .policy.quote import one_line

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
    from .probe.program import run_program
    from .probe.slurm import find_program

    program = find_program("sinfo")
    if program is None:
        return "", ""
    words = [program, "-h", "-N", "-n", node, "-o", "%T|%E"]
    code, text = run_program(words, _TIME_LIMIT, with_errors=False)
    line = text.splitlines()[0] if code == 0 and text.strip() else ""
    state, _bar, reason = line.partition("|")
    return state, reason


def _scontrol(node: str, *words: str) -> bool:
    from .probe.program import last_line, run_program
    from .probe.slurm import find_program

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
