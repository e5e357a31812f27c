# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs have what the policy asks for, whatever their login has."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from testinfra.host import Host

LOOK = "tail -n 20 /var/log/slurm/*.log; systemctl status slurmd; sinfo -l; squeue"
SRUN = "srun --quiet --immediate=60 --time=1 --ntasks=1 --mem=64M"


def read(text: str) -> dict[str, tuple[str, str]]:
    """Return soft and hard by the names that the kernel has for limits."""
    return {
        name: (soft, hard)
        for name, soft, hard in re.findall(r"Max ([a-z ]+?) {2,}(\S+) +(\S+)", text)
    }


@pytest.mark.look(LOOK)
@pytest.mark.parametrize("partition", ["debug", "long"])
def test_a_job_has_what_is_asked_for(log_in: Callable[[str], Host], partition: str) -> None:
    alice = log_in("alice")
    login = read(alice.check_output("cat /proc/self/limits"))
    assert login["locked memory"] == ("65536", "65536")
    job = read(alice.check_output(f"{SRUN} -p {partition} cat /proc/self/limits"))
    assert job["open files"] == ("200000", "200000")
    assert job["locked memory"] == ("unlimited", "unlimited")


@pytest.mark.look(LOOK)
def test_a_job_may_still_ask_for_what_its_login_has(log_in: Callable[[str], Host]) -> None:
    asked = f"{SRUN} --propagate=NOFILE cat /proc/self/limits"
    job = read(log_in("alice").check_output(f"ulimit -Sn 512; {asked}"))
    assert job["open files"][0] == "512"


@pytest.mark.look(LOOK)
def test_a_job_that_ran_before_goes_on(root: Host) -> None:
    """Or, after the reboot, it was started anew, as Slurm does with what a node failed under."""
    assert "slurmstepd" in root.check_output("ps -C slurmstepd -o args=")
    assert root.check_output("squeue -h -t RUNNING,COMPLETING,PENDING -n wrap -o %T")
