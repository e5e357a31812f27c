# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions are read from metadata, as the interpreter would find them, and nothing is imported."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from mlhost_limits.training import packages_read as packages
from mlhost_limits.training.packages_read import find_versions, read_versions


def install(folder: Path, name: str, version: str, metadata: str | None = None) -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    if metadata is not None:
        (info / "METADATA").write_text(metadata)


def make_environment(top: Path, shared: bool = False) -> Path:
    """Make a virtual environment as venv(1) does; return its folder of packages."""
    (top / "bin").mkdir(parents=True)
    (top / "bin" / "python").symlink_to("/usr/bin/python3")
    text = f"home = /usr/bin\ninclude-system-site-packages = {str(shared).lower()}\n"
    (top / "pyvenv.cfg").write_text(text)
    version = os.path.realpath("/usr/bin/python3").rpartition("/")[2]
    return top / "lib" / version / "site-packages"


needs_system = pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no system Python")


def test_metadata_are_read_by_normal_names(tmp_path: Path) -> None:
    install(
        tmp_path,
        "Hugging_Face.hub",
        "1.0",
        "Metadata-Version: 2.1\nVersion: 1.0.post1\n\nVersion: 9",
    )
    install(tmp_path, "torch", "2.13.0+cpu")
    (tmp_path / "wids-0.2.111-py3.11.egg-info").mkdir()
    (tmp_path / "wids-0.2.111-py3.11.egg-info" / "PKG-INFO").write_text("Version: 0.2.111\n")
    (tmp_path / "old-0.1.egg-info").write_text("Version: 0.1\n")
    install(tmp_path, "pipe", "3", "")
    (tmp_path / "pipe-3.dist-info" / "METADATA").unlink()
    os.mkfifo(tmp_path / "pipe-3.dist-info" / "METADATA")
    (tmp_path / "hollow-4.dist-info" / "METADATA").mkdir(parents=True)
    names = ["hugging-face-hub", "torch", "Wids", "old", "pipe", "hollow", "absent"]
    assert find_versions([str(tmp_path), f"{tmp_path}/none"], names) == {
        "hugging-face-hub": "1.0.post1",
        "torch": "2.13.0+cpu",
        "Wids": "0.2.111",
        "old": "0.1",
        "pipe": "3",
        "hollow": "4",
    }


def test_the_first_folder_wins(tmp_path: Path) -> None:
    install(tmp_path / "a", "torch", "1")
    install(tmp_path / "b", "torch", "2")
    assert find_versions([f"{tmp_path}/a", f"{tmp_path}/b"], ["torch"]) == {"torch": "1"}


@needs_system
def test_an_environment_is_asked_and_runs_nothing_of_its_own(tmp_path: Path) -> None:
    site = make_environment(tmp_path / "venv")
    install(site, "webdataset", "0.2.111")
    (site / "evil.pth").write_text(f"import os; os.mkdir('{tmp_path}/ran')\n")
    (site / "sitecustomize.py").write_text(f"import os; os.mkdir('{tmp_path}/ran')\n")
    found = read_versions(f"{tmp_path}/venv/bin/python", None, ["webdataset", "wids"])
    assert found == {"webdataset": "0.2.111"}
    assert not (tmp_path / "ran").exists()


@needs_system
def test_an_environment_may_see_the_packages_of_the_system(tmp_path: Path) -> None:
    make_environment(tmp_path / "venv", shared=True)
    system = read_versions("/usr/bin/python3", None, ["pip", "setuptools", "six"])
    shared = read_versions(f"{tmp_path}/venv/bin/python", None, ["pip", "setuptools", "six"])
    assert shared == system


def test_an_interpreter_that_does_not_answer_is_named(tmp_path: Path) -> None:
    script = tmp_path / "python"
    for text, reason in {
        "exit 3": "it does not say where its packages are",
        "echo hello": "it does not say where its packages are",
        "echo '[1, 2, 3]'": "it does not say where its packages are",
        "exec sleep 60": "did not end within",
    }.items():
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        with pytest.raises(OSError, match=reason):
            read_versions(str(script), None, ["torch"], seconds=0.5)
    with pytest.raises(OSError, match="No such file"):
        read_versions(f"{tmp_path}/none", None, ["torch"])


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")
@pytest.mark.parametrize("user", ["nobody", None])
def test_root_starts_an_interpreter_as_a_user(user: str | None) -> None:
    """A user's interpreter is a user's program: as root it could do anything."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        script = Path(name, "python")
        script.write_text(f"#!/bin/sh\nid -u > {name}/who/uid\necho '[[], \"\"]'\n")
        script.chmod(0o755)
        Path(name, "who").mkdir()
        shutil.chown(Path(name, "who"), "nobody")
        if user is None:
            os.chown(script, 65534, 65534)
        assert read_versions(str(script), user, ["torch"]) == {}
        assert Path(name, "who", "uid").read_text() == "65534\n"


def test_another_user_is_not_asked_for_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.os, "geteuid", lambda: 1000)
    with pytest.raises(OSError, match="only root can start it as root"):
        read_versions(sys.executable, "root", ["torch"])
