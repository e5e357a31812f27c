# SPDX-License-Identifier: GPL-3.0-or-later
"""Cleaning up removes what a dead run of ours made, and nothing else, whatever its name."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from mlhost_limits.host import as_user, scratch
from mlhost_limits.host import scratch as removal
from mlhost_limits.host.children import Report
from mlhost_limits.host.marks import LIMITS, make_mark
from mlhost_limits.host.scratch import (
    CANARY,
    OPEN_FOLDER,
    empty_folder,
    make_scratch,
    open_own_folder,
    remove_scratch,
    sweep,
)

from tests.worlds.dead import make_dead_mark, run_in_dead

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="owners and mounts are root's to change")
NOBODY = 65534


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Give what stands for /run."""
    (tmp_path / "run").mkdir(mode=0o755)
    return tmp_path / "run"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Give a folder with files that no attack may touch."""
    folder = tmp_path / "victim"
    (folder / "below").mkdir(parents=True)
    for name in ("passwd", "below/shadow"):
        (folder / name).write_text("kept")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def leave(run: Path, prefix: str = LIMITS) -> Path:
    """Leave what a run leaves that is killed."""
    folder = run / (prefix + make_dead_mark())
    (folder / "pam/below").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "pam/below/su").write_text("account")
    (folder / "link").symlink_to("/etc")
    return folder


def test_the_next_run_removes_what_a_dead_one_left(run: Path) -> None:
    left = leave(run)
    living = Path(make_scratch(str(run)))
    (living / "file").write_text("mine")
    assert not left.exists()
    other = Path(make_scratch(str(run)))
    assert (living / "file").exists()
    assert remove_scratch(str(living))
    assert remove_scratch(str(other))
    assert not remove_scratch(str(other))
    assert names(run) == []


def test_a_link_of_such_a_name_leads_nowhere(run: Path, victim: Path) -> None:
    before = names(victim)
    for name in ("9999999-x", make_dead_mark()):
        (run / f"{LIMITS}{name}").symlink_to(victim)
    assert sweep(str(run)) == ([], [])
    assert names(victim) == before
    assert len(names(run)) == 2


def test_names_that_only_begin_like_ours_are_somebody_elses(run: Path) -> None:
    """A stray one neither goes nor stops a run, however often it is tried."""
    for name in ("exporter", "9999999", "9999999-x", "1-2-3-4-5", f"{make_dead_mark()}.d"):
        (run / f"{LIMITS}{name}").mkdir(mode=0o700)
        (run / f"{LIMITS}{name}/socket").write_text("in use")
    (run / f"{LIMITS}{make_dead_mark()}").write_text("a file")
    (run / LIMITS).touch()
    os.mkfifo(run / f"{LIMITS}{make_dead_mark()}", 0o600)
    before = names(run)
    for _time in range(2):
        assert remove_scratch(make_scratch(str(run)))
        assert names(run) == before


def test_a_folder_that_is_open_to_others_is_not_ours(run: Path) -> None:
    for mode in (0o750, 0o705, 0o777):
        folder = run / f"{LIMITS}{make_dead_mark()}"
        folder.mkdir()
        folder.chmod(mode)
    before = names(run)
    assert sweep(str(run)) == ([], [])
    assert names(run) == before


@needs_root
def test_what_is_mounted_in_it_stays_and_is_said(run: Path, victim: Path) -> None:
    """A bind mount of the same file system has the same device, and is not a part of ours."""
    before = names(victim)
    left = leave(run)
    (left / "point").mkdir()
    (left / "file").touch()
    done = subprocess.run(
        ["mount", "--bind", str(victim), str(left / "point")], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no mounts here")
    subprocess.run(["mount", "--bind", str(victim / "passwd"), str(left / "file")], check=True)
    try:
        assert sweep(str(run)) == ([], [str(left)])
        assert names(victim) == before
        assert sorted(os.listdir(left)) == ["file", "point"]
    finally:
        for name in ("point", "file"):
            subprocess.run(["umount", str(left / name)], check=True)
    assert sweep(str(run)) == ([str(left)], [])


@needs_root
def test_a_folder_of_another_user_inside_is_not_entered(run: Path) -> None:
    left = leave(run)
    os.chown(left / "pam", NOBODY, NOBODY)
    assert sweep(str(run)) == ([], [str(left)])
    assert (left / "pam/below/su").exists()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give what stands for /var/tmp."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o1777)
        yield Path(name)


@needs_root
def test_what_a_dead_run_left_as_a_user_is_removed_as_that_user(open_folder: Path) -> None:
    mine, theirs = leave(open_folder, CANARY), leave(open_folder, CANARY)
    for base, folders, files in os.walk(theirs):
        for path in (base, *(f"{base}/{name}" for name in (*folders, *files))):
            os.lchown(path, NOBODY, NOBODY)
    bait = leave(open_folder, CANARY)
    os.chown(bait, NOBODY, NOBODY)  # What is in it is root's: no user may remove that.
    assert sorted(sweep(str(open_folder), CANARY).gone) == sorted([str(mine), str(theirs)])
    assert (bait / "pam/below/su").exists()


@needs_root
@pytest.mark.slow
def test_baits_of_a_user_hold_nothing_up(open_folder: Path) -> None:
    for uid in range(60000, 60040):
        for _number in range(40):
            folder = open_folder / f"{CANARY}{uid:07}-1-0123abcd-0123abcd-{os.urandom(8).hex()}"
            folder = Path(str(folder).replace("-00", "-"))
            folder.mkdir(mode=0o700)
            os.chown(folder, uid, uid)
    mine = leave(open_folder, CANARY)
    assert str(mine) in sweep(str(open_folder), CANARY).gone
    assert not mine.exists()


def test_there_is_an_end_to_depth_and_number(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = leave(run)
    deep = left / "/".join("d" * 60)
    deep.mkdir(parents=True)
    assert sweep(str(run)) == ([], [str(left)])
    assert deep.is_dir()
    monkeypatch.setattr(removal, "_DEEPEST", 100)
    (left / "many").mkdir()
    for number in range(300):
        (left / f"many/{number}").touch()
    monkeypatch.setattr(removal, "_MOST", 100)
    while sweep(str(run)).left:
        pass
    assert names(run) == []


def test_a_name_that_leads_elsewhere_by_now_is_left(run: Path, victim: Path) -> None:
    left = leave(run)
    above = os.open(run, OPEN_FOLDER)
    folder = open_own_folder(left.name, above)
    assert folder is not None
    left.rename(run / "aside")
    victim.rename(left)
    assert not removal.remove_folder(left.name, above, folder)
    assert names(left) == ["below", "below/shadow", "passwd"]
    assert names(run / "aside") == []
    os.close(folder)
    os.close(above)


def test_what_has_gone_meanwhile_is_no_trouble(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = leave(run)
    folder = os.open(left, OPEN_FOLDER)
    plain = os.unlink

    def unlink(name: str, *, dir_fd: int | None = None) -> None:
        plain(name, dir_fd=dir_fd)
        raise FileNotFoundError

    monkeypatch.setattr(removal.os, "unlink", lambda name, dir_fd: unlink(name, dir_fd=dir_fd))
    assert empty_folder(folder)
    os.close(folder)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("", "/run"),
        ("/tmp/x", "/run"),
        ("/run/none-such", "/run"),
        ("{run}/link", "/run"),
        ("{run}/open", "/run"),
        ("{run}/own", "{run}/own"),
        ("{run}/own:{run}/open", "{run}/own"),
    ],
)
def test_a_service_has_its_own_place(
    run: Path, monkeypatch: pytest.MonkeyPatch, given: str, used: str
) -> None:
    if "{run}" in given:
        monkeypatch.setattr(scratch, "_RUN", str(run))
        used = used if "{run}" in used else str(run)
    (run / "own").mkdir(mode=0o700)
    (run / "open").mkdir()
    (run / "open").chmod(0o777)
    (run / "link").symlink_to("own")
    monkeypatch.setenv("RUNTIME_DIRECTORY", given.format(run=run))
    assert scratch.find_parent() == used.format(run=run)


def test_a_parent_that_is_not_there_holds_nothing(run: Path) -> None:
    assert sweep(f"{run}/none") == ([], [])
    assert not remove_scratch(f"{run}/none/{LIMITS}{make_mark()}")


def test_what_a_dead_child_made_is_swept(run: Path) -> None:
    left = run_in_dead(lambda: make_scratch(str(run)))
    assert sweep(str(run)) == ([left], [])


@pytest.fixture
def mount_dead(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Give what mounts, as a user may with fusermount3, a file system that never answers."""
    libc = ctypes.CDLL(None, use_errno=True)
    points: list[tuple[Path, int]] = []

    def mount(point: Path) -> None:
        try:
            device = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            pytest.skip(f"no FUSE here: {error}")
        options = f"fd={device},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other"
        points.append((point, device))
        if libc.mount(b"dead", bytes(point), b"fuse", 6, options.encode()):
            pytest.skip("no mounts here")
        asked = os.read(device, 1 << 16)
        unique = struct.unpack_from("IIQ", asked)[2]
        body = struct.pack("IIIIHHIIHHI7I", 7, 31, 65536, 0, 12, 12, 65536, 1, 1, 0, 0, *[0] * 7)
        os.write(device, struct.pack("IiQ", 16 + len(body), 0, unique) + body)

    yield mount
    for point, device in points:
        os.close(device)
        libc.umount2(bytes(point), 2)


@needs_root
def test_what_never_answers_is_asked_nothing(
    open_folder: Path, mount_dead: Callable[[Path], None]
) -> None:
    """A user mounts it on a folder of our name, or in it: the kernel would not let the child go."""
    for inner in ("", "point"):
        bait = open_folder / f"{CANARY}{make_dead_mark()}"
        (bait / "point").mkdir(parents=True)
        bait.chmod(0o700)
        for path in (bait, bait / "point"):
            os.chown(path, NOBODY, NOBODY)
        mount_dead(bait / inner)
    mine = leave(open_folder, CANARY)
    begun = time.monotonic()
    assert sweep(str(open_folder), CANARY).gone == [str(mine)]
    assert time.monotonic() - begun < 5


@needs_root
def test_who_removes_as_a_user_is_one_that_holds_nothing_of_roots(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one way to become a user; it has a control group, and a keyring of its own."""
    bait = leave(open_folder, CANARY)
    os.chown(bait, NOBODY, NOBODY)
    asked: list[as_user.Errand] = []

    def ask(errands: Sequence[as_user.Errand]) -> list[Report]:
        asked.extend(errands)
        return [Report(None, "not now")] * len(errands)

    monkeypatch.setattr(as_user, "ask_users", ask)
    sweep(str(open_folder), CANARY)
    assert [one.person.pw_uid for one in asked] == [NOBODY]
