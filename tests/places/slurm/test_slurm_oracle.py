# SPDX-License-Identifier: GPL-3.0-or-later
"""What we read of slurm.conf is what Slurm reads, and jobs have what we predict.

The daemons of the release run in namespaces of their own; see ``slurm_rig``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.oracle.record import SEED, choose, needs_root, record
from tests.oracle.userland import unpack

PACKAGES = (
    *("base-files", "bash", "coreutils", "dash", "libc-bin", "libpam-modules"),
    *("slurm-client", "slurm-wlm-basic-plugins", "slurmctld", "slurmd"),
)
RELEASE = "bookworm"


@needs_root
def test_slurm_does_what_we_predict(tmp_path: Path) -> None:
    confs, daemons = choose(60, 1000), choose(2, 20)
    tree = unpack(RELEASE, PACKAGES)
    rig = [sys.executable, "-m", "tests.places.slurm.slurm_rig", str(tree), str(tmp_path)]
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--uts"]
    words = [*alone, *rig, str(confs), str(daemons), str(SEED)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    print(
        f"{result['confs']} files, of which Slurm refuses {result['refused']}; {result['jobs']} jobs"
    )
    cases, of = result["confs"] + result["jobs"], confs + 6 * daemons
    record("slurm", RELEASE, cases, len(result["mismatches"]), of=of)
    told = "".join(
        f"\n{'; '.join(differences)}\n"
        + "".join(f"  {path}\n    {text!r}\n" for path, text in case.items())
        for case, differences in result["mismatches"]
    )
    assert not told, told
    assert result["confs"] == confs
    assert result["jobs"] == 6 * daemons
