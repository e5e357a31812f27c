"""A way back in: a root shell of a guest that stays open while nobody else can log in."""

# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess

from .connection import Host


class Control:
    """A root shell that stays open, so that a lock-out can be taken back."""

    def __init__(self, host: Host) -> None:
        """Log in."""
        self._shell = subprocess.Popen(
            [*host.ssh_command(), "bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def run(self, command: str, alone: bool = False) -> str:
        """Return what a command prints; it must succeed.

        :param alone: Start no process, for a host that can start none: shell builtins only.
        """
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        before, after = ("{", "}") if alone else ("(", ")")
        self._shell.stdin.write(f'{before} {command}\n{after} </dev/null; echo "== done $?"\n')
        lines: list[str] = []
        for line in self._shell.stdout:
            if line.startswith("== done "):
                assert line == "== done 0\n", (command, lines)
                break
            lines.append(line)
        return "".join(lines)

    def close(self) -> None:
        """Log out."""
        self._shell.communicate()
