# SPDX-License-Identifier: GPL-3.0-or-later
"""Provision once, in this process alone, so that its system calls can be counted and broken.

Prints one line of JSON: what changed, or why nothing did. The policy is small, so that most system
calls are those of reading, writing and proving.
"""

from __future__ import annotations

import gc
import json
import sys

from mlhost_limits import provision as provision_module
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.schema import load_policy
from mlhost_limits.sessions.measure import measure_sessions

POLICY = {
    "kernel": {"vm.max_map_count": 262144},
    "sessions": [
        {
            "users": ["*", "root"],
            "limits": {"nofile": {"soft": 900, "hard": 1000}, "memlock": "8MiB"},
        }
    ],
    "containers": {"docker": {"limits": {"nofile": 900}, "shm_size": "1GiB"}},
}


LOCKING = {"sessions": [{"users": ["alice"], "limits": {"nofile": 900, "maxlogins": 0}}]}
"""What alice could not log in with, if it were ever written."""


def find_closed() -> list[str]:
    """Return the sessions that do not open, of the services that every Debian has."""
    wanted = [(service, user) for service in ("su", "login") for user in ("root", "alice")]
    return [
        f"{result.user} through {result.service}: {result.reason}"
        for result in measure_sessions(wanted)
        if not result.opens
    ]


def main(state: str) -> int:
    if state == "sessions":
        print(json.dumps({"closed": find_closed()}))
        return 0
    if state == "locking":  # It stands for a way to lock a host that no refusal knows.
        provision_module._find_lockouts = lambda *_given: ()
    # What the collector closes, it closes at a time of its own: that would shift the counts.
    gc.disable()
    try:
        outcome = provision_module.provision(
            load_policy(LOCKING if state == "locking" else POLICY, "none"),
            provision_module.ProvisionOptions(absent=state == "absent", override=True),
        )
    except PolicyError as exc:
        print(json.dumps({"refused": exc.problems}))
        return 1
    except (OSError, ValueError) as exc:
        print(json.dumps({"failed": str(exc)}))
        return 1
    files = [edit.path for edit in outcome.edits]
    print(json.dumps({"changed": bool(files or outcome.sysctls), "files": files}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
