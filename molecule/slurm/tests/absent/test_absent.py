# SPDX-License-Identifier: GPL-3.0-or-later
"""What was taken back leaves nothing."""

from __future__ import annotations

from collections.abc import Callable

from testinfra.host import Host


def test_files_are_as_they_were(root: Host) -> None:
    assert root.run("cmp /etc/slurm/slurm.conf /root/slurm.conf").rc == 0
    assert not root.file("/etc/systemd/system/slurmd.service.d/90-mlhost-slurm.conf").exists


def test_jobs_have_what_they_had(log_in: Callable[[str], Host]) -> None:
    job = "srun --quiet --immediate=60 --time=1 --mem=64M grep locked /proc/self/limits"
    assert log_in("alice").check_output(job).split()[3] == "65536"
