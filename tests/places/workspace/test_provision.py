# SPDX-License-Identifier: GPL-3.0-or-later
"""A workspace is made, found unchanged, moves damaged files aside, and is given back."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.reader import PolicyError
from mlhost_limits.training import cache_open_read, cache_read
from mlhost_limits.workspace import provision as module
from mlhost_limits.workspace.plan import Workspace
from mlhost_limits.workspace.provision import prepare_workspace, read_directory
from mlhost_limits.workspace.settle import make_directory, move_aside, quarantine, remove_directory
from mlhost_limits.write.replace import apply_edits

from tests.worlds.archives import make_pt

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it is root's")


@pytest.fixture
def top(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder; the files of /etc are those of a tree in it."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        tree = Path(name, "tree")
        (tree / "etc").mkdir(parents=True)
        monkeypatch.setattr(module, "read_text", lambda path: read(tree, path))
        monkeypatch.setattr(
            "mlhost_limits.sessions.settle.apply_edits", lambda edits: apply_edits(edits, str(tree))
        )
        monkeypatch.setattr(module, "only_run", contextlib.nullcontext)
        yield Path(name)


def read(tree: Path, path: str) -> str | None:
    file = Path(f"{tree}{path}")
    return file.read_text() if file.exists() else None


def list_tree(top: Path) -> list[str]:
    return sorted(
        str(path.relative_to(top)) for path in (top / "tree").rglob("*") if path.is_file()
    )


def test_it_is_made_found_unchanged_and_given_back(top: Path) -> None:
    wanted = Workspace(f"{top}/a/cache", variables=("WDS_CACHE",), age="10d")
    planned = prepare_workspace(wanted, False, True)
    assert not (top / "a").exists()
    assert not list_tree(top)
    made = prepare_workspace(wanted, False, False)
    assert made.as_result() == planned.as_result()
    assert made.as_result()["changed"]
    assert read_directory(wanted.path) == (0, 0, 0o1777)
    assert list_tree(top) == [
        "tree/etc/profile.d/90-mlhost.sh",
        "tree/etc/tmpfiles.d/90-mlhost.conf",
    ]
    assert not prepare_workspace(wanted, False, False).as_result()["changed"]
    other = wanted._replace(mode="0750", owner="nobody")
    assert prepare_workspace(other, False, False).running[0][1:] == (
        "uid 0, gid 0, mode 1777",
        "uid 65534, gid 0, mode 0750",
    )
    assert prepare_workspace(wanted._replace(absent=True), False, False).as_result()["changed"]
    assert not list_tree(top)
    assert not Path(wanted.path).exists()
    assert not prepare_workspace(wanted._replace(absent=True), False, False).as_result()["changed"]


def test_a_tmpfs_is_mounted_resized_and_unmounted(top: Path) -> None:
    wanted = Workspace(f"{top}/cache", size=2**20, mode="0700")
    try:
        prepare_workspace(wanted, False, False)
    except OSError as exc:
        pytest.skip(f"nothing can be mounted here: {exc}")
    assert os.statvfs(wanted.path).f_blocks * 4096 == 2**20
    assert read_directory(wanted.path) == (0, 0, 0o700)
    (top / "cache" / "file").write_text("kept")
    assert not prepare_workspace(wanted, False, False).as_result()["changed"]
    assert prepare_workspace(wanted._replace(size=2**21 - 1), False, False).running[0][1:] == (
        "tmpfs of 1048576 bytes",
        "tmpfs of 2097152 bytes",
    )
    assert os.statvfs(wanted.path).f_blocks * 4096 == 2**21
    assert (top / "cache" / "file").read_text() == "kept"
    assert prepare_workspace(wanted._replace(absent=True), False, False).as_result()["changed"]
    assert not os.path.exists(wanted.path)


def test_a_mount_that_fails_leaves_the_files_as_they_were(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "mount_tmpfs", lambda *_words: "no")
    with pytest.raises(OSError, match="no; every file was put back"):
        prepare_workspace(Workspace(f"{top}/cache", size=4096), False, False)
    assert not list_tree(top)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"path": "relative"}, "'relative' was given; accepted is an absolute path"),
        ({"owner": "no-such-user"}, "this host has no user no-such-user"),
    ],
)
def test_what_is_not_accepted_is_refused(top: Path, change: dict[str, Any], error: str) -> None:
    with pytest.raises((PolicyError, ValueError), match=error):
        prepare_workspace(Workspace(f"{top}/c")._replace(**change), False, False)
    assert not list_tree(top)


def test_root_makes_no_directory_where_others_may_write(top: Path) -> None:
    (top / "open").mkdir()
    (top / "open").chmod(0o777)
    with pytest.raises(OSError, match="users other than root may write"):
        make_directory(f"{top}/open/cache", 0, 0, 0o755)
    (top / "link").symlink_to("/etc")
    with pytest.raises(OSError, match="outside of"):
        make_directory(f"{top}/link/cache", 0, 0, 0o755)
    (top / "file").write_text("")
    with pytest.raises(OSError, match="not a directory"):
        read_directory(f"{top}/file")


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files that were written just now be old at once."""
    monkeypatch.setattr(cache_open_read, "YOUNG", 0.05)
    monkeypatch.setattr(cache_open_read, "PAUSE", 0.01)


def test_damaged_files_are_moved_and_never_removed(top: Path) -> None:
    cache = top / "cache"
    (cache / "a").mkdir(parents=True)
    wanted = Workspace(str(cache), mode="0755")
    prepare_workspace(wanted, False, False)
    (cache / "whole.pt").write_bytes(make_pt())
    (cache / "a" / "cut.pt").write_bytes(b"PK\3\4")
    (cache / "cut.pt").write_bytes(b"PK\3\4x")
    assert sorted(prepare_workspace(wanted, True, True).quarantined) == ["a/cut.pt", "cut.pt"]
    done = prepare_workspace(wanted, True, False)
    assert sorted(done.quarantined) == ["a/cut.pt", "cut.pt"]
    assert done.as_result()["changed"]
    assert (cache / ".quarantine" / "a__cut.pt").read_bytes() == b"PK\3\4"
    assert (cache / ".quarantine" / "cut.pt").read_bytes() == b"PK\3\4x"
    assert (cache / "whole.pt").exists()
    assert not prepare_workspace(wanted, True, False).as_result()["changed"]
    (cache / "cut.pt").write_bytes(b"again")
    assert prepare_workspace(wanted, True, False).quarantined == ("cut.pt",)
    assert (cache / ".quarantine" / "cut.pt~").read_bytes() == b"again"
    with open(cache / "now.pt", "wb"):
        pass
    assert move_aside(str(cache), ["gone.pt", "none/x.pt"]) == []


def test_a_quarantine_that_somebody_planted_is_not_used(top: Path) -> None:
    cache, outside = top / "cache", top / "outside"
    cache.mkdir()
    outside.mkdir()
    (cache / "cut.pt").write_bytes(b"")
    (cache / ".quarantine").symlink_to(outside)
    with pytest.raises(OSError):  # noqa: PT011 - a link is not a directory, and so is what it says
        move_aside(str(cache), ["cut.pt"])
    (cache / ".quarantine").unlink()
    (cache / ".quarantine").mkdir()
    os.chown(cache / ".quarantine", 65534, 65534)
    with pytest.raises(OSError, match="was made by uid 65534"):
        move_aside(str(cache), ["cut.pt"])
    (cache / ".quarantine").rmdir()
    (cache / "folder").symlink_to(outside)
    (outside / "x.pt").write_text("untouched")
    assert move_aside(str(cache), ["folder/x.pt"]) == []
    assert (outside / "x.pt").read_text() == "untouched"


def test_a_directory_of_another_user_is_not_taken(top: Path) -> None:
    """What we made may change hands; what somebody else has made stays theirs."""
    home = top / "home"
    home.mkdir()
    os.chown(home, 12, 12)
    with pytest.raises(PolicyError, match=r"home is .*'s; name that owner, or another directory$"):
        prepare_workspace(Workspace(str(home)), False, False)
    assert home.stat().st_uid == 12
    ours = Workspace(f"{top}/cache", owner="nobody")
    prepare_workspace(ours, False, False)
    assert prepare_workspace(ours._replace(owner="root"), False, False).as_result()["changed"]
    assert (top / "cache").stat().st_uid == 0


@pytest.mark.parametrize("moves", [True, False])
def test_nothing_is_done_where_others_may_write_on_the_way(top: Path, moves: bool) -> None:
    """The directory itself is as it shall be, and whoever owns the one above may exchange it."""
    home = top / "home"
    (home / "cache").mkdir(parents=True)
    (home / "cache/cut.pt").touch()
    (home / "cache").chmod(0o1777)
    os.chown(home, 65534, 65534)
    for check_mode in (True, False):
        with pytest.raises(OSError, match="users other than root may write to"):
            prepare_workspace(Workspace(f"{home}/cache"), moves, check_mode)
    assert os.listdir(home / "cache") == ["cut.pt"]
    (home / "link").symlink_to(top)
    (home / "empty").mkdir()
    remove_directory(f"{home}/link/home/empty")
    remove_directory(f"{home}/empty")
    assert (home / "empty").is_dir()


def test_a_users_files_are_moved_by_that_user(top: Path) -> None:
    cache = top / "cache"
    cache.mkdir()
    for name in ("cut.pt", "now.pt"):
        (cache / name).touch()
    os.chown(cache, 65534, 65534)
    words = ["sh", "-c", "exec >now.pt; echo >&2; exec sleep 60"]
    with subprocess.Popen(words, cwd=cache, stderr=subprocess.PIPE) as writer:
        assert writer.stderr
        writer.stderr.readline()
        assert quarantine(str(cache), True) == (("cut.pt",), 1, ())
        assert quarantine(str(cache), False) == (("cut.pt",), 1, ())
        writer.kill()
    assert (cache / ".quarantine").stat().st_uid == 65534
    os.chown(cache / ".quarantine", 12, 12)
    note = f"{cache}: nothing was moved: [Errno 13] Permission denied: '.quarantine'"
    assert quarantine(str(cache), False) == ((), 0, (note,))


def test_what_is_others_in_a_directory_of_roots_is_counted(top: Path) -> None:
    """Whoever plants a quarantine there stops no run, and gets no file."""
    cache = top / "cache"
    cache.mkdir()
    cache.chmod(0o1777)
    for name in ("cut.pt", "theirs.pt"):
        (cache / name).touch()
    (cache / "folder").mkdir()
    for name in ("theirs.pt", "folder"):
        os.chown(cache / name, 65534, 65534)
    note = f"{cache}: 2 files or directories were not looked at; mlhost-limits check says why"
    assert quarantine(str(cache), False) == (("cut.pt",), 1, (note,))
    (cache / "cut.pt").touch()
    os.chown(cache / ".quarantine", 65534, 65534)
    (said,) = quarantine(str(cache), False).notes
    assert said.endswith(".quarantine: was made by uid 65534, and is not used")
    os.chown(cache / ".quarantine", 0, 0)
    (cache / ".quarantine").chmod(0o770)
    (said,) = quarantine(str(cache), False).notes
    assert said.endswith(".quarantine: can be opened by other users, and is not used")
    assert (cache / "cut.pt").exists()


def test_a_file_that_is_being_written_is_not_moved(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sees who writes it, as in another container; it is whole, or grown, a second later."""
    cache = top / "cache"
    cache.mkdir()
    for name in ("heals.pt", "grows.pt", "stays.pt"):
        (cache / name).write_bytes(make_pt()[:-5])

    def write(_changed: float) -> None:
        (cache / "heals.pt").write_bytes(make_pt())
        (cache / "grows.pt").write_bytes(make_pt()[:-4])

    monkeypatch.setattr(cache_read, "wait_for", write)
    monkeypatch.setattr(cache_open_read, "YOUNG", 0.0)
    assert quarantine(str(cache), False).names == ("stays.pt",)
    assert sorted(path.name for path in cache.glob("*.pt")) == ["grows.pt", "heals.pt"]


def test_many_names_are_counted_and_not_told(top: Path) -> None:
    cache = top / "cache"
    cache.mkdir()
    for number in range(300):
        (cache / f"{number}{'n' * 200}.pt").touch()
    aside = quarantine(str(cache), False)
    assert aside.number == 300
    more = 300 - len(aside.names)
    assert aside.notes == (f"{cache}: {more} more damaged files are not named here",)
    assert len(os.listdir(cache / ".quarantine")) == 300


def test_a_look_that_does_not_end_is_said(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlhost_limits.workspace.settle.check_files", lambda _path: os._exit(3))
    said = f"{top}: its files were not looked at: ended with status 3"
    assert quarantine(str(top), False) == ((), 0, (said,))
