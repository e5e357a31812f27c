# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a play against this machine, whose folders of settings are its own and empty for as long."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

HOSTS = "here ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n"
SHORT = {"kernel": {"vm.max_map_count": 2**31 - 1}}
"""No host meets this."""
ASKED = {"kernel": {"vm.max_map_count": 65530}}
"""What a host has anyway, so that no running value is touched."""
LATE = 'echo "vm.max_map_count = 60000" > /etc/sysctl.d/99-late.conf'
"""A line that beats ours at a boot, so that ours is written."""
_PRIVATE = """
mount -t tmpfs -o mode=755 tmpfs /etc/sysctl.d
mount -t tmpfs -o mode=755 tmpfs /etc/security
{before}
exec "$@"
"""


def run(
    folder: Path, *words: str, before: str = "", hosts: str = HOSTS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of Ansible; nothing that it writes below /etc/sysctl.d and the like stays.

    :param before: Shell that makes the machine what the test needs.
    """
    (folder / "hosts").write_text(hosts)
    script = _PRIVATE.format(before=before)
    return subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script, "sh", words[0], "-i", "hosts", *words[1:]],
        cwd=folder,
        env={**os.environ, "ANSIBLE_FORCE_COLOR": "0", "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def play(
    folder: Path, tasks: list[dict[str, Any]], *words: str, before: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run tasks in a play of their own; the callback shows each task with its name."""
    plays = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    (folder / "play.yml").write_text(json.dumps(plays))
    return run(folder, "ansible-playbook", "play.yml", *words, before=before, **environment)


def check(**given: Any) -> dict[str, Any]:
    """Return a task that checks, by default against what no host meets."""
    return {"mlhost.limits.check": {"profile": "none", "policy": SHORT, **given}}


def include(role: str, **given: Any) -> dict[str, Any]:
    """Return a task that runs a role with its variables."""
    told = {f"mlhost_limits_{name}": value for name, value in given.items()}
    return {"ansible.builtin.include_role": {"name": f"mlhost.limits.{role}"}, "vars": told}


def provision(**given: Any) -> dict[str, Any]:
    return {"mlhost.limits.provision": {"profile": "none", **given}}
