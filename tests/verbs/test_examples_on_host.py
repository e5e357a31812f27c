# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples for images do what they say, on a root tree that then boots, and at a first boot."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.host import guest
from tests.host.connection import Host
from tests.host.tree import unpack
from tests.zipapp import build

pytestmark = pytest.mark.host
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
RELEASE = "bookworm"
ARCHIVE = "/usr/local/lib/mlhost-limits.pyz"


def put(host: Host, path: str, content: bytes) -> None:
    words = [*host.ssh_command(), f"mkdir -p $(dirname {path}) && cat > {path}"]
    subprocess.run(words, input=content, check=True, timeout=60)


def test_mkosi_builds_an_image_that_is_green_when_it_boots(tmp_path: Path) -> None:
    """Its scripts run as mkosi runs them: in the image's tree, and beside it."""
    tree, sources = tmp_path / "tree", tmp_path / "sources"
    unpack(RELEASE, tree)
    shutil.copytree(EXAMPLES / "mkosi", sources)
    (sources / "mlhost-limits.pyz").write_bytes(build())
    shutil.copytree(sources, tree / "work" / "src")
    inside = ["chroot", str(tree), "env", "SRCDIR=/work/src", "/work/src/mkosi.postinst.chroot"]
    assert "changed" in subprocess.run(inside, check=True, capture_output=True, text=True).stdout
    shutil.rmtree(tree / "work")
    beside = {**os.environ, "BUILDROOT": str(tree), "SRCDIR": str(sources)}
    done = subprocess.run(
        [sources / "mkosi.finalize"], env=beside, check=True, capture_output=True, text=True
    )
    assert "48 unknown until the first boot (48 predicted to" in done.stdout
    host = guest.start(f"mkosi-{os.getpid()}", RELEASE, True, tree)
    try:
        put(host, ARCHIVE, build())
        told = host.ssh(f"python3 {ARCHIVE} check --profile training@1").stdout
    finally:
        guest.stop(host.name)
    assert told.startswith("48 of 48 requirements are met\n")


def test_cloud_init_makes_a_first_boot_green() -> None:
    """Its commands run in their order, but for the one that fetches the file."""
    config = yaml.safe_load((EXAMPLES / "cloud-init.yml").read_text())
    fetch, *commands = config["runcmd"]
    assert fetch[0] == "curl"
    assert ARCHIVE in fetch
    with guest.running(RELEASE, new=True) as host:
        put(host, ARCHIVE, build())
        for file in config["write_files"]:
            put(host, file["path"], file["content"].encode())
        told = [host.ssh(" ".join(command)).stdout for command in commands]
    assert told[-1].startswith("48 of 48 requirements are met\n")
