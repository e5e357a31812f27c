# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual environments with the very versions that fail, one for each file of requirements."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from .trial import BUILD, RUNS, CannotShowError, Command

REQUIREMENTS = Path(__file__).parent / "requirements"


def run_with(environment: str, script: str, *words: object, **variables: str) -> Command:
    """Return the command of one of ``runs`` in an environment, which is made where it is absent."""
    python = install(environment)
    return Command((str(python), str(RUNS / script), *map(str, words)), variables)


def install(name: str) -> Path:
    """Return the interpreter of an environment; nothing is installed twice."""
    wanted, folder = REQUIREMENTS / f"{name}.txt", BUILD / "venv" / name
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        sys.stderr.write(f"Installing {wanted.name} into {folder}\n")
        venv.create(folder, clear=True, with_pip=True)
        for line in wanted.read_text().splitlines():
            # One line after another: what is first is what the next one is built against.
            if line and not line.startswith("#"):
                _install(folder, line.partition("  #")[0].split())
        stamp.write_text(wanted.read_text())
    return folder / "bin" / "python"


def _install(folder: Path, words: list[str]) -> None:
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", *words]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotShowError(f"pip install {' '.join(words)}: {done.stderr.strip()[-2000:]}")
