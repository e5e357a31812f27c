# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a guest: bring its Docker into a state, provision and check it there, and undo the state.

Prints as JSON what was said at every step; a crash is a crash of this program too.
"""

from __future__ import annotations

import json
import subprocess
import sys

from mlhost_limits.check_host import check_host
from mlhost_limits.core.policy import CheckOptions as Look
from mlhost_limits.provision import ProvisionOptions, provision
from mlhost_limits.schema import load_policy

POLICY = load_policy(None, "training")


def run(line: str) -> None:
    subprocess.run(["sh", "-c", line], stdout=sys.stderr, check=False)


def make_true(absent: bool = False) -> dict[str, object]:
    """Provision, and say what came of it."""
    try:
        done = provision(
            POLICY,
            ProvisionOptions(
                sections=("docker",), switches={"docker_restart": True}, absent=absent
            ),
        ).as_result()
    except (OSError, ValueError) as exc:
        return {"refused": str(exc)}
    return {key: done[key] for key in ("files", "notes", "restarted", "in_effect")}


def look() -> list[list[object]]:
    """Check, and return every finding's status and what was seen."""
    found = check_host(POLICY, Look(sections=("docker",))).findings
    return [[one.status, one.requirement.item, one.observation.reason] for one in found]


def main() -> None:
    make, unmake = sys.argv[1:]
    run(make)
    said = {"done": make_true(), "now": look()}
    run(f"{unmake}; systemctl reset-failed docker; systemctl start docker")
    said["then"] = look()
    said["absent"] = make_true(absent=True)
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
