# SPDX-License-Identifier: GPL-3.0-or-later
"""Both caches are there as asked for, and each login and task has a directory of its own."""

from __future__ import annotations

import pytest
from testinfra.host import Host

pytestmark = pytest.mark.look(
    "tail -n +1 /etc/fstab /etc/tmpfiles.d/90-mlhost.conf /etc/profile.d/90-mlhost.sh",
    "findmnt; ls -laR /scratch /srv/embeddings",
    "tail -n 20 /var/log/slurm/*.log; sinfo -l; squeue",
)

CACHE, DISK = "/scratch/cache", "/srv/embeddings"
SRUN = "srun --quiet --immediate=60 --time=1 --mem=64M -n2"


def test_directories_are_as_they_were_asked_for(root: Host) -> None:
    told = root.check_output(
        f"for path in {CACHE} {DISK}; do stat -c '%U:%G %a' $path; stat -f -c %T $path; done"
    )
    assert told.split("\n") == ["root:root 1777", "tmpfs", "alice:alice 750", "ext2/ext3"]


def test_memory_has_its_size(root: Host) -> None:
    told = root.check_output(f"df -B1 --output=size {CACHE} /dev/shm").split()
    assert told[-2:] == [str(64 * 2**20), str(700 * 2**20)]


def test_a_login_has_a_directory_of_its_own(root: Host) -> None:
    uid, caches, mode = root.check_output(
        "id -u alice; su -l alice -c 'echo $WIDS_CACHE $WDS_CACHE; stat -c %U:%a $WDS_CACHE'"
    ).split("\n")
    assert caches == f"{CACHE}/{uid} {CACHE}/{uid}"
    assert mode == "alice:700"


def test_a_task_of_slurm_has_a_directory_of_its_own(root: Host) -> None:
    show = 'sh -c "echo \\$SLURM_JOB_ID \\$(stat -c %u:%a:%n \\$WIDS_CACHE)"'
    told = root.check_output(f"su -l alice -c 'cd /tmp; {SRUN} {show}'; id -u alice")
    *rows, uid = told.split("\n")
    job = rows[0].split()[0]
    seen = [f"{job} {uid}:700:{CACHE}/{uid}-{job}-{rank}" for rank in (0, 1)]
    assert sorted(rows) == seen
