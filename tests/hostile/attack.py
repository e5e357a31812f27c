# SPDX-License-Identifier: GPL-3.0-or-later
"""What an attack is: a program of an ordinary user, and the command of root that it runs beside."""

from __future__ import annotations

from typing import NamedTuple

USER = "mallory"


class Attack(NamedTuple):
    """One attack. The program says ``READY`` once root may come."""

    name: str
    kind: str
    verb: str
    """A name of ``verbs.VERBS``."""
    program: str
    """Runs as the user, with ``tricks`` imported, and lives until root's command has ended."""
    setup: str = ""
    """What the host's circumstances are: a shell script of root, run before the user comes."""
    shell: str = ""
    """The user's login shell, bash if empty."""
    rounds: int = 1
    """How many times root's command runs: a race is not won each time."""
    guard: str = ""
    """The guards of ``on_guest/guards.py`` without which the attack works."""
    after: str = ""
    """What root does next, as the report told: a Python program with ``report`` in it."""
