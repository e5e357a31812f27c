# SPDX-License-Identifier: GPL-3.0-or-later
"""One file holds all of the command and runs on every Python there is here, from 3.8."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.zipapp import build

TOP = Path(__file__).parents[2]
ASK = "import sys; raise SystemExit(not sys.version_info >= (3, 8))"


def find_pythons() -> Iterator[str]:
    """Yield the Pythons of this machine, those of pyenv too; each of 3.8 and later that starts."""
    names = [shutil.which(f"python3.{minor}") for minor in range(8, 20)]
    kept = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
    for path in dict.fromkeys([sys.executable, *filter(None, names), *map(str, kept)]):
        if subprocess.run([path, "-c", ASK], capture_output=True).returncode == 0:
            yield path


PYTHONS = list(find_pythons())


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "mlhost-limits.pyz"
    path.write_bytes(build())
    return path


def run(python: str, archive: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the file on a bare Python: nothing that is installed beside it, no settings of ours."""
    return subprocess.run(
        [python, "-I", "-S", str(archive), *map(str, words)],
        cwd=archive.parent,
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        capture_output=True,
        text=True,
    )


def test_the_same_sources_give_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    for python in PYTHONS:
        target = tmp_path / "again.pyz"
        words = [python, "-m", "tests.zipapp", str(target)]
        subprocess.run(words, cwd=TOP, check=True, capture_output=True)
        assert target.read_bytes() == archive.read_bytes(), python


@pytest.mark.parametrize("python", PYTHONS)
def test_all_of_the_command_runs_from_it(python: str, archive: Path) -> None:
    checked = run(python, archive, "check", "--json", "--canary", "never", "--probe", "predict")
    assert checked.returncode in (0, 1, 2)
    assert json.loads(checked.stdout)["format"] == "mlhost.limits/check"
    result = archive.parent / "node.json"
    result.write_text(checked.stdout)
    for words, told in {
        ("--version",): "mlhost-limits ",
        ("cause", "pam-user-beats-wildcard"): "beats one for everyone",
        ("explain", "kernel", "vm.max_map_count"): "from the kernel to the process",
        ("watch", "--", "echo", "watched"): "watched",
        ("why", "Too many open files"): "limit: ",
        ("heal", "--all", "--check"): "raise",
        ("watch", "--", "true"): "",
        ("resolve",): "",
        ("adopt",): "#",
        ("completion", "fish"): "complete -c mlhost-limits",
        ("provision", "--check", "--only", "kernel", "--profile", "training"): "",
        ("preflight", "--workers", "0"): "pass",
        ("report", result, "-o", archive.parent / "page.html"): "written to ",
    }.items():
        done = run(python, archive, *words)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in ((0, 1) if words[0] != "provision" else (0, 1, 2)), done.stderr
        assert told in done.stdout
    page = (archive.parent / "page.html").read_text()
    assert "<style>" in page
    assert "function" in page


def test_it_starts_by_itself(archive: Path) -> None:
    assert archive.read_bytes().startswith(b"#!/usr/bin/python3 -I\n")
