# SPDX-License-Identifier: GPL-3.0-or-later
"""What we predict of units and system.conf is what systemd itself reads, and what processes get.

The systemd of each release runs as PID 1 in namespaces of its own on this machine's kernel; see
``systemd_rig``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.host import guest
from tests.host.library import carry
from tests.oracle.record import SEED, choose, needs_root, record
from tests.oracle.userland import FOLDERS, RELEASES, unpack
from tests.places.systemd.systemd_rig import STARTED_PER_ROUND, UNITS_PER_ROUND

SHARES = {"bullseye": 5, "bookworm": 12, "trixie": 5}


@needs_root
@pytest.mark.parametrize("release", RELEASES)
def test_systemd_reads_what_we_predict(release: str, tmp_path: Path) -> None:
    rounds = choose(SHARES.get(release, 5), 100)
    rig = [sys.executable, "-m", "tests.places.systemd.systemd_rig"]
    words = [*rig, str(unpack(release)), str(tmp_path), str(rounds), str(SEED)]
    done = subprocess.run(
        ["unshare", "--mount", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    judge("systemd", release, rounds, json.loads(done.stdout))


def test_processes_get_what_we_predict_where_root_may_raise_limits() -> None:
    """On a guest root has every capability, so that fs.nr_open alone is in the way."""
    rounds = choose(2, 8)
    with guest.running("bookworm") as host:
        carry(host, {"tests": Path(__file__).parents[2]})
        host.ssh(f"cd / && mkdir -p {' '.join(FOLDERS)}")
        rig = f"python3 -m tests.places.systemd.systemd_rig / /mnt {rounds} {SEED}"
        shown = host.ssh(f"cd /opt && PYTHONPATH=/opt unshare --mount {rig}", timeout=1200).stdout
    judge("systemd-guest", "bookworm", rounds, json.loads(shown))


def judge(kind: str, release: str, rounds: int, result: dict[str, Any]) -> None:
    """Leave the figures, and fail with the smallest cases that differ."""
    cases = result["units"] + result["managers"] + result["processes"]
    print(f"{cases} are {result['units']} units, {result['managers']} managers, ", end="")
    print(f"{result['processes']} processes, {result['clamped']} with less nofile than stated")
    of = rounds * (1 + UNITS_PER_ROUND + STARTED_PER_ROUND)
    record(kind, release, cases, len(result["mismatches"]), result["not_started"], of=of)
    told = "".join(
        f"\n{unit}: {'; '.join(differences)}\n"
        + "".join(f"  {path}\n    {text!r}\n" for path, text in files.items())
        for unit, files, differences in result["mismatches"]
    )
    assert not told, told
    assert result["managers"] == rounds
    assert result["processes"] >= rounds
    assert result["clamped"]
