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
        (status, text), (_status, every) = check(tree), check(tree, "-v")
    finally:
        vendor.unlink()
    assert status == 1
    assert "95-vendor.conf:1" in text
    assert f"chroot {tree} sh -c" in " ".join(every.replace("\\\n", "").split())


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


NOFILE = {"nofile": {"soft": 65536, "hard": 131072}}
EVERY_SECTION = {
    "sessions": [{"users": ["*", "root", "@sudo"], "limits": NOFILE}],
    "kernel": {"vm.max_map_count": 262144},
    "services": {
        "default": {**NOFILE, "tasks": 4096},
        "units": {"cron.service": {**NOFILE, "tasks": 4096}},
        "logind": {"remove_ipc": False},
    },
    "containers": {
        "docker": {"limits": NOFILE, "shm_size": "8GiB"},
        "podman": {"limits": NOFILE, "shm_size": "8GiB"},
        "containerd": {"limits": NOFILE},
    },
    "jobs": {"slurm": {"limits": {"nofile": 131072}}},
    "shared_memory": {"size": "8GiB"},
}
IN_CHROOT = """
import json, sys
from mlhost_limits.verbs import CHECK_ARGUMENTS, PROVISION_ARGUMENTS, run_check, run_provision
asked = {"policy": json.load(sys.stdin), "profile": "none"}
def fill(options):
    return {**{name: one.get("default") for name, one in options.items()}, **asked}
write = fill(PROVISION_ARGUMENTS)
told = [run_provision(dict(write), False), run_provision(dict(write), False)]
told.append(run_check(fill(CHECK_ARGUMENTS), False))
told.append(run_provision({**write, "state": "absent"}, False))
print(json.dumps(told))
"""


def test_a_policy_of_every_section_is_written_in_a_chroot_without_proc(tree, tmp_path):
    bare = tmp_path / "tree"
    subprocess.run(["cp", "-a", tree, bare], check=True)
    shutil.copytree(LIBRARY, bare / "opt/mlhost_limits")
    (bare / "usr/bin/podman").symlink_to("/bin/true")
    before = {path: path.read_bytes() for path in (bare / "etc").rglob("*.conf")}
    done = subprocess.run(
        ["chroot", bare, "env", "PYTHONPATH=/opt", "python3", "-Bc", IN_CHROOT],
        input=json.dumps(EVERY_SECTION),
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, found, last = json.loads(done.stdout)
    assert (first["failed"], first["changed"], first["restarted"]) == (False, True, []), first
    assert (second["failed"], second["changed"]) == (False, False), second
    counts = found["summary"]
    assert (counts["pass"], counts["fail"]) == (0, 0), found["report"]
    foretold = [one for one in found["findings"] if one["after_boot"] == "pass"]
    assert len(foretold) > 43, found["report"]
    assert last["failed"] is False, last
    # The scenario's own lines were ours too, and are gone with the rest.
    after = {path: path.read_bytes() for path in (bare / "etc").rglob("*.conf")}
    assert {path for path in {*before, *after} if before.get(path) != after.get(path)} == {
        bare / "etc/security/limits.d/90-mlhost.conf",
        bare / "etc/sysctl.d/90-mlhost.conf",
    }


def test_nothing_of_the_building_is_left(tree):
    left = [path for path in (tree / "run").rglob("*") if "mlhost" in path.name]
    left += list((tree / "etc").rglob(".mlhost-*"))
    assert left == []


def test_the_units_start_at_boot(tree):
    wants = tree / "etc/systemd/system"
    assert (wants / "timers.target.wants/mlhost-limits-monitor.timer").is_symlink()
    assert (wants / "multi-user.target.wants/mlhost-limits-first-boot.service").is_symlink()
