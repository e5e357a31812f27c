# SPDX-License-Identifier: GPL-3.0-or-later
"""Fuzz every parser, led by coverage, for some seconds each: ``python -m tests.fuzz [SECONDS]``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = Path(__file__).with_name("one_target.py")
SECONDS = 20
LONGEST = 4096


def fuzz(name: str, fragments: list[str], seconds: int) -> tuple[bool, str]:
    """Fuzz one target in a process of its own; return whether it held, and libFuzzer's last line."""
    with tempfile.TemporaryDirectory(prefix="mlhost-fuzz-") as folder:
        for number, fragment in enumerate(fragments):
            Path(folder, str(number)).write_bytes(fragment.encode("utf-8", "surrogatepass"))
        done = subprocess.run(
            [sys.executable, str(TARGET), name, f"-max_total_time={seconds}"]
            + [f"-max_len={LONGEST}", "-timeout=20", f"-artifact_prefix={folder}/", folder],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    ends = [line for line in lines if line.startswith("Done")]
    return done.returncode == 0, "\n".join(ends or lines[-25:])


def main(seconds: int) -> int:
    sys.path.insert(0, str(TARGET.parents[2]))
    import tests.conftest  # noqa: F401 - it makes the library importable
    from tests.fuzz.targets import FRAGMENTS, TARGETS

    failed = 0
    for name in TARGETS:
        held, text = fuzz(name, list(FRAGMENTS), seconds)
        failed += not held
        print(f"{'ok  ' if held else 'FAIL'} {name}: {text}", flush=True)
    print(f"fuzz: {len(TARGETS)} parsers, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
