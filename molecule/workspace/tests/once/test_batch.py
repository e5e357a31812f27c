# SPDX-License-Identifier: GPL-3.0-or-later
"""A batch script, which is no login, is named its directory by the TaskProlog."""

from __future__ import annotations

import pytest
from testinfra.host import Host

SUBMIT = 'sbatch -W -Q -n1 --mem=64M -o out --wrap "echo \\$SLURM_JOB_ID \\$WDS_CACHE"; cat out'


@pytest.mark.look("tail -n 20 /var/log/slurm/*.log; sinfo -l; squeue")
def test_a_batch_script_has_a_directory_of_its_own(root: Host) -> None:
    told = root.check_output(f"su -l alice -c 'cd /tmp; {SUBMIT}'; id -u alice")
    job, path, uid = told.split()
    assert path == f"/scratch/cache/{uid}-{job}-0"
