# SPDX-License-Identifier: GPL-3.0-or-later
"""What real logins on a guest get, and how the session probe's answers compare."""

from __future__ import annotations

import subprocess
from typing import Any

from mlhost_limits.policy.proc_limits import parse_proc_limits

from tests.host.connection import Host

Limits = dict[str, list[int]]
Real = dict[tuple[str, str], "Limits | None"]
"""Limits by service and user; ``None`` where no session opened."""

# su and sudo, called from inside a session of root, all at once.
CALLS = """
folder=$(mktemp -d)
for user in root alice; do
  su $user -c 'cat /proc/self/limits' > "$folder/su $user" 2>/dev/null </dev/null &
  sudo -n -u $user cat /proc/self/limits > "$folder/sudo $user" 2>/dev/null </dev/null &
done
wait
cd "$folder" && for name in *; do echo "== $name"; cat "$name"; done
rm -r "$folder"
"""


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

    def run(self, command: str) -> str:
        """Return what a command prints; it must succeed."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f'( {command}\n) </dev/null; echo "== done $?"\n')
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


def read_sections(text: str) -> Real:
    """Return the limits under each ``== service user`` heading, ``None`` where there are none."""
    found: Real = {}
    for section in text.split("== ")[1:]:
        heading, _, body = section.partition("\n")
        service, user = heading.split()
        found[service, user] = read_limits(body)
    return found


def read_limits(text: str) -> Limits | None:
    if "Max open files" not in text:
        return None
    return {name: list(pair) for name, pair in parse_proc_limits(text).items()}


def compare(name: str, real: Real, predicted: list[list[Any]]) -> tuple[list[str], int]:
    """Return one sentence for each session that the probe got wrong, and how many it left open.

    :param predicted: As ``measure_sessions`` returns them, by way of JSON.
    """
    wrong = []
    unknown = sum(limits is None and opens is not False for *_, limits, _, _, opens in predicted)
    for service, user, limits, how, reason, opens in predicted:
        expected = real[service, user]
        if (opens is False) != (expected is None):
            wrong.append(
                f"{name}: {user}@{service}: probe {opens} ({reason or how}), real {expected}"
            )
        for item, value in (limits or {}).items():
            if expected and value != expected[item]:
                wrong.append(
                    f"{name}: {user}@{service}: {item} {value}, real {expected[item]} ({how})"
                )
    return wrong, unknown
