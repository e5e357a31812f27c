# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that takes a connection and never answers is told on the page, and holds nobody up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .plays import HOSTS, run

STUCK = "stuck ansible_connection=local ansible_python_interpreter={}/stuck\n"


def audit(folder: Path, hosts: str) -> dict[str, Any]:
    stuck = folder / "stuck"
    stuck.write_text("#!/bin/sh\nexec sleep 600\n")
    stuck.chmod(0o755)
    words = ("-e", "mlhost_limits_host_timeout=20", "-e", "ansible_become=false")
    policy = json.dumps({"mlhost_limits_policy": {"kernel": {"vm.max_map_count": 1}}})
    command = ("ansible-playbook", "mlhost.limits.audit", *words, "-e", policy)
    told = run(folder, *command, "-e", "mlhost_limits_profile=none", hosts=hosts, PWD=str(folder))
    page = folder / "mlhost-limits-audit.json"
    assert page.exists(), told.stdout + told.stderr
    found: dict[str, Any] = json.loads(page.read_text())["hosts"]
    return found


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("others", ["", HOSTS])
def test_a_host_that_never_answers_is_told(tmp_path: Path, others: str) -> None:
    found = audit(tmp_path, STUCK.format(tmp_path) + others)
    assert found["stuck"]["status"] == "unchecked"
    assert found["stuck"]["reason"].endswith("Timed out after 20 second(s).")
    assert [found[name]["status"] for name in found if name != "stuck"] == ["pass"] * bool(others)
