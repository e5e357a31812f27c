# SPDX-License-Identifier: GPL-3.0-or-later
"""A new place is one folder and one line: all that asks finds it without another edit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
TOY = TOP / "tests" / "worlds" / "toy"
ASK = """
import json, sys
from mlhost_limits import cause_codes, places, verbs
from mlhost_limits.check_host import check_host
from mlhost_limits.core.policy import CheckOptions, ProvisionOptions
from mlhost_limits.explain import explain
from mlhost_limits.host import files
from mlhost_limits.provision import provision
from mlhost_limits.resolve import resolve_tree
from mlhost_limits.schema import load_policy

root = sys.argv[1]
policy = load_policy({"toys": {"marbles": 5}}, "none")
image = check_host(policy, CheckOptions(root=root)).findings
from mlhost_limits.toys import check, provision as toys_provision
check.read_text = toys_provision.read_text = lambda path, _root="/": files.read_text(path, root)
checked = check_host(policy, CheckOptions()).findings
made = provision(policy, ProvisionOptions(check_mode=True))
arguments = (verbs.CHECK_ARGUMENTS, verbs.PROVISION_ARGUMENTS)
print(json.dumps({
    "check": [(one.status, one.requirement.place, [c.code for c in one.causes]) for one in checked],
    "image": [(one.status, one.requirement.item, [c.code for c in one.causes]) for one in image],
    "provision": [edit.path for edit in made.edits],
    "in_effect": made.in_effect,
    "explain": [link.value for link in explain("toys", "marbles")],
    "resolve": [one["value"] for one in resolve_tree(root, None, None) if one["place"] == "toys"],
    "sections": ["toys" in one["sections"]["choices"] for one in arguments],
    "switch": "toys_restart" in verbs.PROVISION_ARGUMENTS,
    "key": [place.about for place in places.PLACES if place.name == "toys"],
    "code": cause_codes.describe_code("toys-too-few")[1],
    "explained": "toys" in places.EXPLAINED,
}))
"""
EXPECTED = {
    "check": [["fail", "toys", ["toys-too-few"]]],
    "image": [["fail", "marbles", ["toys-too-few"]]],
    "provision": ["/etc/toys.conf"],
    "in_effect": ["toys"],
    "explain": ["3"],
    "resolve": ["3"],
    "sections": [True, True],
    "switch": True,
    "key": ["toys"],
    "code": "in toys",
    "explained": True,
}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A copy of the library with the toy's folder, and its one line in the registry."""
    copy = tmp_path / "mlhost_limits"
    shutil.copytree(TOP / "plugins" / "module_utils", copy)
    shutil.copytree(TOY, copy / "toys")
    registry = copy / "places.py"
    text = registry.read_text(encoding="utf-8")
    text = text.replace("    Training(),\n", "    Training(),\n    Toys(),\n")
    text = text.replace("from .training", "from .toys.place import Toys\nfrom .training", 1)
    registry.write_text(text, encoding="utf-8")
    (tmp_path / "root" / "etc").mkdir(parents=True)
    user = "root:x:0:0::/root:/bin/sh\n"
    (tmp_path / "root" / "etc" / "passwd").write_text(user, encoding="utf-8")
    (tmp_path / "root" / "etc" / "toys.conf").write_text("marbles = 3\n", encoding="utf-8")
    return tmp_path


def run(library: Path, *words: str, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_whoever_asks_finds_a_new_place(library: Path) -> None:
    assert len(list(TOY.glob("*.py"))) <= 7
    found: dict[str, Any] = json.loads(run(library, "-c", ASK, str(library / "root")))
    assert found == EXPECTED


def test_the_command_line_finds_a_new_place(library: Path) -> None:
    policy = library / "policy.json"
    policy.write_text(json.dumps({"toys": {"marbles": 5}}), encoding="utf-8")
    words = ("--profile", "none", "--policy", str(policy), "--root", str(library / "root"))
    told = run(library, "-m", "mlhost_limits.cli", "check", *words, status=1)
    assert "/etc/toys.conf:1" in told
    assert "toys" in run(library, "-m", "mlhost_limits.cli", "cause", "toys-too-few")
