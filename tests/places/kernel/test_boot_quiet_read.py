# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of the scripts of a boot is used as long as nothing that decided it has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from mlhost_limits.kernel import boot_quiet_read, boot_scripts_read
from mlhost_limits.kernel.boot_quiet_read import READERS, Looked, Loud
from mlhost_limits.write.cache import keep_cached, read_cached

SCRIPTS = {"/etc/rc.local": "#!/bin/sh\n/opt/tune\n"}
STARTED = {"cron.service": True}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "kept").mkdir()
    kept = str(tmp_path / "kept")
    monkeypatch.setattr(boot_quiet_read, "FOLDER", kept)
    monkeypatch.setattr(boot_quiet_read, "read_cached", partial(read_cached, folder=kept))
    monkeypatch.setattr(boot_quiet_read, "keep_cached", partial(keep_cached, folder=kept))
    return kept


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that another calls, one that is not there, and a folder that is listed."""
    monkeypatch.setattr(boot_quiet_read, "_SETTLED", -60.0)  # It was made just now.
    folder = tmp_path / "opt"
    (folder / "parts").mkdir(parents=True)
    (folder / "tune").write_text("#!/bin/sh\n: 1\n")
    (folder / "link").symlink_to("tune")
    return folder


def keep(tree: Path) -> None:
    looked = [
        *(f"{tree}/{name}" for name in ("tune", "absent", "link", "parts/")),
        "/none/x",
        "/n\0ne",
    ]
    Loud(SCRIPTS, STARTED, "sysctls").keep(["/etc/rc.local"], Looked(looked))


def recall() -> list[str] | None:
    found: list[str] | None = Loud(SCRIPTS, STARTED, "sysctls").recall()
    return found


def test_what_was_found_is_used_again(tree: Path) -> None:
    assert recall() is None
    keep(tree)
    assert recall() == ["/etc/rc.local"]


def rewrite(tree: Path) -> None:
    """Write as many other bytes, and give the file its time back."""
    file = tree / "tune"
    times = file.stat()
    file.write_text("#!/bin/sh\n: 2\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def relink(tree: Path) -> None:
    (tree / "other").write_text("#!/bin/sh\nsysctl -w vm.max_map_count=1\n")
    (tree / "link").unlink()
    (tree / "link").symlink_to("other")


@pytest.mark.parametrize(
    "change",
    [
        rewrite,
        relink,
        lambda tree: (tree / "tune").unlink(),
        lambda tree: (tree / "absent").write_text("x"),
        lambda tree: (tree / "parts" / "new").write_text("x"),
        lambda tree: (tree / "tune").chmod(0o755),
        lambda tree: tree.chmod(0o777),
        lambda tree: tree.parent.chmod(0o777),
        lambda tree: os.chown(tree / "link", 1000, -1, follow_symlinks=False),
    ],
    ids=["content", "link", "gone", "new", "part", "mode", "folder", "above", "owner of a link"],
)
def test_a_change_is_seen(tree: Path, change: Callable[[Path], object]) -> None:
    keep(tree)
    change(tree)
    assert recall() is None


@pytest.mark.parametrize(
    ("scripts", "started", "name"),
    [
        ({"/etc/rc.local": "#!/bin/sh\n/opt/tune \n"}, STARTED, "sysctls"),
        ({**SCRIPTS, "/etc/cron.d/x": ""}, STARTED, "sysctls"),
        (SCRIPTS, {"cron.service": False}, "sysctls"),
        (SCRIPTS, {}, "sysctls"),
        (SCRIPTS, STARTED, "shm"),
    ],
)
def test_other_scripts_are_others(
    tree: Path, scripts: dict[str, str], started: dict[str, bool], name: str
) -> None:
    keep(tree)
    assert Loud(scripts, started, name).recall() is None


def test_with_other_code_that_tells_what_is_wanted_it_is_looked_for_again(
    tree: Path, tmp_path: Path
) -> None:
    wanted = tmp_path / "wanted.py"
    wanted.touch()
    Loud(SCRIPTS, STARTED, "sysctls", str(wanted)).keep([], Looked([str(tree)]))
    assert Loud(SCRIPTS, STARTED, "sysctls", str(wanted)).recall() == []
    wanted.write_text("another")
    assert Loud(SCRIPTS, STARTED, "sysctls", str(wanted)).recall() is None


@pytest.mark.parametrize("kept", [[], {}, {"seen": {}}, {"seen": {}, "loud": 5}, {"seen": None}])
def test_what_was_kept_in_another_form_is_looked_for_again(
    kept: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boot_quiet_read, "read_cached", lambda *_asked: kept)
    assert Loud(SCRIPTS, STARTED, "sysctls").recall() is None


def test_where_nothing_of_ours_is_kept_nothing_is_left(tree: Path, folder: str) -> None:
    os.rmdir(folder)
    keep(tree)
    assert not os.path.exists(folder)


def test_other_code_finds_anew(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(boot_quiet_read.__file__).parent
    assert {path.stem for path in folder.glob("boot_*.py")} <= set(READERS)
    assert all((folder / f"{name}.py").exists() for name in READERS)
    keep(tree)
    archive = tree / "mlhost-limits.pyz"
    archive.write_text("another")
    monkeypatch.setattr(boot_quiet_read, "__file__", f"{archive}/kernel/boot_quiet_read.py")
    assert recall() is None
    keep(tree)
    assert recall() is not None
    archive.write_text("yet another")
    assert recall() is None


def test_what_changed_just_now_is_not_kept(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot_quiet_read, "_SETTLED", 60.0)
    keep(tree)
    assert recall() is None


def test_what_changed_while_it_was_read_is_not_kept(tree: Path) -> None:
    """Another link of that name may be as old as the one that was read."""
    (tree / "old").write_text("#!/bin/sh\nsysctl -w vm.max_map_count=1\n")
    looked = Looked([f"{tree}/link"])
    (tree / "link").unlink()
    (tree / "link").symlink_to("old")
    Loud(SCRIPTS, STARTED, "sysctls").keep([], looked)
    assert recall() is None


def test_what_lies_in_a_folder_that_is_not_listed_changes_nothing(tree: Path) -> None:
    keep(tree)
    (tree / "beside").write_text("x")
    assert recall() is not None


def test_two_questions_of_one_look_do_not_forget_each_other(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boot_quiet_read, "_SETTLED", -60.0)
    monkeypatch.setattr(boot_scripts_read, "find_started", lambda *_given: STARTED)
    monkeypatch.setattr(boot_scripts_read, "_list_scripts", lambda *_given: ())
    kept: list[str] = []
    keep = boot_quiet_read.keep_cached

    def note(name: str, key: str, content: object) -> None:
        kept.append(name)
        keep(name, key, content)

    monkeypatch.setattr(boot_quiet_read, "keep_cached", note)
    for _look in range(2):
        for of_packages in (False, True):
            boot_scripts_read.read_boot_scripts("/", of_packages)
    assert len(kept) == len(set(kept)) == len(os.listdir(folder)) == 2
