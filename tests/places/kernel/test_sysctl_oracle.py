# SPDX-License-Identifier: GPL-3.0-or-later
"""What we predict of sysctl.d is what systemd-sysctl and ``sysctl --system`` leave in the kernel.

The programs are the real ones of each release, run on this machine's kernel in namespaces of
their own; see ``sysctl_rig``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle.record import SEED, choose, needs_root, record
from tests.oracle.userland import RELEASES, unpack

SHARES = {"bullseye": 60, "bookworm": 120, "trixie": 60}


@needs_root
@pytest.mark.parametrize("release", RELEASES)
def test_the_kernel_has_what_we_predict(release: str, tmp_path: Path) -> None:
    trees = choose(SHARES.get(release, 5), 2000)
    rig = [sys.executable, "-m", "tests.places.kernel.sysctl_rig"]
    words = [*rig, str(unpack(release)), str(tmp_path), str(trees), str(SEED)]
    done = subprocess.run(
        ["unshare", "--mount", "--net", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    record("sysctl", release, result["cases"], len(result["mismatches"]), of=2 * trees)
    told = "".join(
        f"\n{program}: {'; '.join(differences)}\n"
        + "".join(f"  {path}\n    {text!r}\n" for path, text in tree.items())
        for program, tree, differences in result["mismatches"]
    )
    assert not told, told
