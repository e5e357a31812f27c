# SPDX-License-Identifier: GPL-3.0-or-later
"""The tree holds the policy and nothing of how it was built, and nothing of it is called a pass."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.conftest import LIBRARY, load_library

load_library()

from mlhost_limits.cli import main


@pytest.fixture(scope="module")
def tree() -> Path:
    instance = yaml.safe_load(Path(os.environ["MOLECULE_INSTANCE_CONFIG"]).read_text())[0]
    return Path(instance["address"])


def check(tree: Path, *words: str) -> tuple[int, str]:
    """Return what a check from outside of the tree says, and its exit status."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = main(["check", "--root", str(tree), *words])
    return status, output.getvalue()


def test_nothing_passes_and_all_is_foretold(tree):
    status, text = check(tree, "--json")
    found = json.loads(text)
    counts = found["summary"]
    assert (status, counts["pass"], counts["fail"]) == (0, 0, 0), found["report"]
    assert counts["unknown"] > 40
    assert {one["after_boot"] for one in found["findings"]} == {"pass"}, found["report"]
    assert "unknown until the first boot" in found["report"][-1]


def test_a_line_of_others_that_will_win_falls_short_by_its_name(tree):
    vendor = tree / "etc/security/limits.d/95-vendor.conf"
    vendor.write_text("root soft nofile 1024\n")
    try:
        status, text = check(tree)
    finally:
        vendor.unlink()
    assert status == 1
    assert "95-vendor.conf:1" in text
    assert f"chroot {tree} sed" in " ".join(text.replace("\\\n", "").split())


IN_CONTAINER = """
mount -t proc proc /proc && mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys
export PYTHONPATH=/opt/lib PYTHONDONTWRITEBYTECODE=1
python3 -c 'import json
from mlhost_limits.verbs import PROVISION_ARGUMENTS, run_provision
given = {name: entry.get("default") for name, entry in PROVISION_ARGUMENTS.items()}
print(json.dumps(run_provision(given, False)))'
"""


def test_a_build_container_that_may_not_write_proc_sys_finds_it_done(tree):
    library = tree / "opt/lib/mlhost_limits"
    shutil.copytree(LIBRARY, library, ignore=shutil.ignore_patterns("__pycache__"))
    try:
        done = subprocess.run(
            [
                "unshare",
                "--mount",
                "--pid",
                "--fork",
                f"--root={tree}",
                "/bin/sh",
                "-c",
                IN_CONTAINER,
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        shutil.rmtree(library.parent)
    told = json.loads(done.stdout)
    assert (told["failed"], told["changed"], told["sysctls"]) == (False, False, []), told
    assert any("this is an image" in note for note in told["notes"])


def test_nothing_of_the_building_is_left(tree):
    left = [path for path in (tree / "run").rglob("*") if "mlhost" in path.name]
    left += list((tree / "etc").rglob(".mlhost-*"))
    assert left == []


def test_the_units_start_at_boot(tree):
    wants = tree / "etc/systemd/system"
    assert (wants / "timers.target.wants/mlhost-limits-monitor.timer").is_symlink()
    assert (wants / "multi-user.target.wants/mlhost-limits-first-boot.service").is_symlink()
