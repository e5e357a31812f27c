# SPDX-License-Identifier: GPL-3.0-or-later
"""The guards of ``on_guest/guards.py`` that must be out of the way for an attack to do harm."""

from __future__ import annotations

from collections.abc import Mapping

NEEDED: Mapping[str, str] = {
    ".bashrc is a link to a secret of root's": "door leave_root",
    ".bashrc reads a link to a file of sudoers.d": "door leave_root",
    "500 processes with names of every byte": "utf-8",
    "a home that never answers": "deadline",
    "a start file on a file system that never answers": "deadline",
    "a start file with the bytes of a terminal": "clean",
    "bash: answers with JSON of its own": "pipes",
    "bash: prints lines without end": "answers",
    "bash: prints without end": "answers",
    "bash: sleeps": "deadline",
    "bash: stops every process of its own": "deadline",
    "cgroups with names of every byte, of containers and of units of root's": "find_owner",
    "containers.conf is a link to a secret of root's (explain)": "door leave_root",
    "dockerd: its daemon.json is a link to a secret of root's": "door leave_root",
    "processes that come and go": "gone",
    "slurmd: -f names a secret of root's": "find_slurmd door",
    "slurmd: an older one than root's": "find_slurmd door",
    "sockets of the user's manager never answer": "deadline",
    "the user may start no more processes": "answers",
    "the user's bus never answers": "deadline",
    "the user's keys are all used up": "keyrings_first",
}
"""By the attack's name; one that is not here harmed an older library."""
