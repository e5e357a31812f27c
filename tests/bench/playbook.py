# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a playbook as a person would, with the clock running, and refuse a run that is not as meant."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
_RECAP = re.compile(r" ok=(\d+) +changed=(\d+) .* failed=(\d+)")


class Run(NamedTuple):
    """One run of a playbook. ``tasks`` holds the seconds from a task's title to the next title."""

    seconds: float
    changed: int
    tasks: dict[str, float]


class Controller(NamedTuple):
    """Where playbooks run against: an inventory, and the collections both sides may use."""

    inventory: Path
    collections: str

    def run(self, playbook: str, *arguments: str, changes: bool | None = None) -> Run:
        """Run one of this folder's playbooks; its start and end are those of the program.

        :param changes: Whether the run must change something; ``None`` where either is right.
        :raises RuntimeError: If it fails or changes what it should not; with its output.
        """
        program = Path(sys.executable).with_name("ansible-playbook")
        words = [str(program), "-i", str(self.inventory), str(HERE / playbook), *arguments]
        settings = {
            "ANSIBLE_CONFIG": str(HERE / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": self.collections,
        }
        start = time.monotonic()
        with subprocess.Popen(
            words,
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            lines = [(time.monotonic(), line) for line in process.stdout or ()]
        end = time.monotonic()
        output = "".join(line for _, line in lines)
        recap = _RECAP.search(output)
        if process.returncode or recap is None:
            raise RuntimeError(f"{' '.join(words)} failed:\n{output}")
        changed = int(recap[2])
        if changes is not None and changes != bool(changed):
            raise RuntimeError(f"{' '.join(words)} changed {changed} tasks:\n{output}")
        return Run(end - start, changed, _time_tasks(lines))


def _time_tasks(lines: list[tuple[float, str]]) -> dict[str, float]:
    """Return how long each task took, from when its title and the next one were printed."""
    titles = [
        (when, line.partition("[")[2].partition("]")[0])
        for when, line in lines
        if line.startswith(("TASK [", "PLAY RECAP"))
    ]
    return {name: after - when for (when, name), (after, _) in zip(titles, titles[1:])}
