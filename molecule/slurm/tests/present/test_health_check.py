# SPDX-License-Identifier: GPL-3.0-or-later
"""The health check drains a node that falls short, says why, and never resumes one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from testinfra.host import Host

SCRIPT = Path(__file__).parents[4] / "docs" / "examples" / "slurm-health-check.sh"
PROGRAM = "/usr/local/sbin/slurm-health-check.sh"
STAND_IN = "/usr/local/bin/mlhost-limits"
STATE = "sinfo -h -N -p debug -o '%T|%E'"


@pytest.fixture
def check(root: Host) -> Iterator[Host]:
    """Put the script on the host, and in the place of our command one that says what it is told."""
    for path, text in ((PROGRAM, SCRIPT.read_text()), (STAND_IN, "#!/bin/sh\n. /run/verdict\n")):
        root.check_output(f"printf %s {shlex.quote(text)} > {path} && chmod 755 {path}")
    yield root
    root.run(f"rm -f {PROGRAM} {STAND_IN} /run/verdict; scontrol update nodename=host state=resume")


def run(host: Host, verdict: str) -> int:
    host.check_output(f"printf %s {shlex.quote(verdict)} > /run/verdict")
    return host.run(f"env -i SLURMD_NODENAME=host {PROGRAM}").rc


@pytest.mark.look("sinfo -N -l; cat /run/verdict")
def test_a_node_that_falls_short_is_drained_with_the_reason(check: Host) -> None:
    assert run(check, "exit 0") == 0
    assert not check.check_output(STATE).startswith("drain")
    short = "FAIL job:slurm: memlock hard 64KiB, required unlimited"
    assert run(check, f"echo ok; echo {shlex.quote(short)}; exit 1") == 1
    state, reason = check.check_output(STATE).split("|")
    assert state.startswith("drain")
    assert reason == "mlhost-limits: job:slurm: memlock hard 64KiB, required unlimited"
    assert run(check, "exit 0") == 0  # It is well again, and stays drained.
    assert check.check_output(STATE).startswith("drain")
    assert run(check, "echo FAIL another; exit 1") == 1
    assert "another" not in check.check_output(STATE)


@pytest.mark.look("sinfo -N -l; cat /run/verdict")
def test_a_check_that_cannot_be_made_drains_as_well(check: Host) -> None:
    assert run(check, "echo no policy >&2; exit 2") == 2
    assert check.check_output(STATE).endswith("mlhost-limits: the check itself failed: no policy")
