# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare every prediction with the real thing; write ``build/oracle.json``, end with figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from .record import FIGURES

TOP = Path(__file__).parents[2]
WHERE = (
    *sorted(map(str, TOP.glob("tests/places/*/test_*_oracle.py"))),
    "tests/places/sessions/test_measure_on_host.py",
)
KINDS = (
    *("compose", "docker", "docker-raised", "pam", "podman", "session states", "sessions"),
    *("slurm", "sysctl", "systemd", "systemd-guest"),
)
"""What a whole run compares; one that is missing was skipped, or has failed by itself."""


def main() -> int:
    FIGURES.unlink(missing_ok=True)
    environment = {**os.environ, "MLHOST_ALL": "1"}
    words = [sys.executable, "-m", "pytest", "-s", *(sys.argv[1:] or WHERE)]
    status = subprocess.run(words, env=environment, check=False).returncode
    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    figures = [one for releases in known.values() for one in releases.values()]
    sums = (
        f"{sum(one[name] for one in figures)} {name}" for name in ("cases", "mismatches", "unknown")
    )
    print(f"oracle: {', '.join(sums)} in {len(figures)} comparisons; {FIGURES}")
    missing = [] if sys.argv[1:] else [kind for kind in KINDS if kind not in known]
    if missing:
        print(f"oracle: nothing was compared of {', '.join(missing)}")
    return status or len(missing)


if __name__ == "__main__":
    sys.exit(main())
