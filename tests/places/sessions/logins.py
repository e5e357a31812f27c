# SPDX-License-Identifier: GPL-3.0-or-later
"""What real logins on a guest get, and how the session probe's answers compare."""

from __future__ import annotations

from typing import Any

from mlhost_limits.core.values import parse_proc_limits

Limits = dict[str, list[int]]
Real = dict[tuple[str, str], "Limits | None"]
"""Limits by service and user; ``None`` where no session opened."""

_CALLED = ("su", "sudo")

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

    su and sudo are called from a session of root's: where none opens, nobody has called them.
    :param predicted: As ``measure_sessions`` returns them, by way of JSON.
    """
    wrong, unknown = [], 0
    for service, user, limits, how, reason, opens in predicted:
        expected = real[service, user]
        if service in _CALLED and real["sshd", "root"] is None:
            unknown += 1
            continue
        unknown += limits is None and opens is not False
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
