# SPDX-License-Identifier: GPL-3.0-or-later
"""What we predict of generated limits files is what the real pam_limits does with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.host import guest
from tests.host.built_like import FAMILIES
from tests.host.library import LIBRARY, carry
from tests.oracle.record import SEED, needs_root, record, takes_long

TOP = Path(__file__).parents[3]
RIG = ("limits_files", "pam_world", "pam_prediction", "pam_rig")
SETS, SETS_ON_A_GUEST, SETS_LIKE = 750, 20000, 5000
"""How many sets of files to try, the last of what is built like another; each for two users."""

# One rig for each processor of the guest; the numbers of the sets are shared out.
ON_A_GUEST = """
cd /opt && export PYTHONPATH=/opt
for first in 0 {half}; do
  folder=$(mktemp -d -p /dev/shm)
  python3 -m tests.places.sessions.pam_rig $folder {seed} $first {half} > $folder.out 2> $folder.err &
done
wait
cat /dev/shm/*.out
cat /dev/shm/*.err >&2
"""


def judge(release: str, sets: int, output: str, errors: str) -> None:
    """Record the figures and show the smallest failing cases."""
    results = [json.loads(line) for line in output.splitlines()]
    cases = sum(result["cases"] for result in results)
    mismatches = [one for result in results for one in result["mismatches"]]
    unknown = sum((Counter(result["unknown"]) for result in results), Counter())
    record("pam", release, cases, len(mismatches), unknown.total(), of=2 * sets)
    print(*(f"  {count} unknown: {reason}" for reason, count in unknown.items()), sep="\n")
    for user, files, differences in mismatches[:20]:
        print(f"{user}: {'; '.join(differences)}")
        print(*(f"  {path}\n    {text!r}" for path, text in files.items()), sep="\n")
    assert not mismatches
    assert len(results) == sets, errors


@needs_root
def test_prediction_is_what_pam_limits_gives_here(tmp_path: Path) -> None:
    """In namespaces of this machine; where its root may not raise limits, that shows as well."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "mlhost_limits").symlink_to(LIBRARY)
    (tmp_path / "world").mkdir()
    words = [
        sys.executable,
        "-m",
        "tests.places.sessions.pam_rig",
        str(tmp_path / "world"),
        str(SEED),
    ]
    path = f"{TOP}:{tmp_path / 'library'}"
    done = subprocess.run(
        [*words, "0", str(SETS)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    judge("here", SETS, done.stdout, done.stderr)


@takes_long
@pytest.mark.parametrize("release", ["bookworm", "bullseye", "trixie", *FAMILIES])
def test_prediction_is_what_a_booted_debian_gives(release: str) -> None:
    """With all of root's rights, so that every limit may be raised."""
    with guest.running(release) as host:
        files = {
            f"tests/places/sessions/{name}.py": TOP / f"tests/places/sessions/{name}.py"
            for name in RIG
        }
        carry(host, files)
        sets = SETS_LIKE if release in FAMILIES else SETS_ON_A_GUEST
        done = host.ssh(ON_A_GUEST.format(half=sets // 2, seed=SEED), timeout=7200)
    judge(release, sets, done.stdout, done.stderr)
