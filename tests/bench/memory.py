# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the most memory that our modules hold on a target; never while something is timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .playbook import HERE

if TYPE_CHECKING:
    from .target import Target

_FOLDER = "/root/bench"
_NOTES = "/run/bench-peaks"  # As in note_peak.py.
_WRAPPER = f"""#!/bin/sh
PYTHONPATH={_FOLDER} exec /usr/bin/python3 "$@"
"""


def measure_peaks(target: Target) -> dict[str, float]:
    """Return the peak resident size of the target's Python in MB, of ours and of a ping.

    Ours is the highest of a first run, one without changes, a check, and a check that starts
    its canary container.
    """
    note = (HERE / "note_peak.py").read_text()
    target.host.ssh(f"mkdir {_FOLDER} && cat > {_FOLDER}/sitecustomize.py", input=note)
    target.host.ssh(f"cat > {_FOLDER}/python && chmod 0755 {_FOLDER}/python", input=_WRAPPER)
    interpreter = ("-e", f"ansible_python_interpreter={_FOLDER}/python")
    target.controller.run("ping.yml", *interpreter)
    ping = max(_take_notes(target))
    target.reset()
    target.controller.run("ours.yml", *interpreter, changes=True)
    target.controller.run("ours.yml", *interpreter, changes=False)
    target.forget()
    target.controller.run("ours.yml", "--tags", "check", *interpreter)
    return {"target_peak_mb": max(_take_notes(target)), "ping_peak_mb": ping}


def _take_notes(target: Target) -> list[float]:
    """Return what the wrapper noted since the last time."""
    notes = target.host.ssh(f"cat {_NOTES} && rm {_NOTES}").stdout
    return [int(line) * 1024 / 1e6 for line in notes.split()]
