# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory is looked at as the user who will run; nobody can lead the look elsewhere."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest
from mlhost_limits.core import folder_states
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.host import trial_folder
from mlhost_limits.host.children import run_in_children
from mlhost_limits.training import folder_measure as directory
from mlhost_limits.training import proofs_measure as proofs
from mlhost_limits.training.folder_measure import look_at_directory, run_there
from mlhost_limits.training.folder_rules import FolderFacts, Proof

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")
NOBODY = 65534
PROVED = dict.fromkeys(proofs.PROOFS, Proof("pass"))


@pytest.fixture
def top() -> Iterator[Path]:
    """Give a folder that every user can reach."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def make(path: Path, uid: int = 0, mode: int = 0o755) -> Path:
    path.mkdir()
    os.chown(path, uid, uid)
    path.chmod(mode)
    return path


def snapshot(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns) for path in [folder, *folder.rglob("*")])


@pytest.mark.parametrize("user", [None, "root", "nobody"])
def test_a_directory_of_the_user_passes_and_is_left_empty(top: Path, user: str | None) -> None:
    cache = make(top / "cache", NOBODY if user == "nobody" else 0)
    facts = look_at_directory(str(cache), user)
    assert (facts.state, facts.user, facts.writing) == (
        "a directory",
        user or "root",
        Proof("pass"),
    )
    assert facts.proofs == PROVED
    assert facts.real_path == str(cache)
    assert facts.free_bytes > 0
    assert facts.filesystem
    assert facts.mount
    assert not list(cache.iterdir())


def test_what_root_may_is_not_what_the_user_may(top: Path) -> None:
    cache = make(top / "cache", 0, 0o755)
    facts = look_at_directory(str(cache), "nobody")
    assert facts.writing == Proof("fail", "[Errno 13] Permission denied")
    assert (facts.owner, facts.mode) == ("root", 0o755)
    assert look_at_directory(str(cache), None).writing == Proof("pass")


def test_the_way_ends_before_the_directory(top: Path) -> None:
    make(top / "closed", 0, 0o700).joinpath("cache").mkdir()
    (top / "file").write_text("")
    os.mkfifo(top / "pipe")
    (top / "loop").symlink_to("loop")
    ends = {
        "none/cache": (folder_states.ABSENT, "none", "does not exist"),
        "closed/cache": (folder_states.CLOSED, "closed", "Permission denied"),
        "file": (folder_states.NO_DIRECTORY, "file", "is a file"),
        "file/cache": (folder_states.NO_DIRECTORY, "file", "is a file"),
        "pipe": (folder_states.NO_DIRECTORY, "pipe", "is neither a file nor a directory"),
        "loop": (folder_states.BROKEN, "loop", "Too many levels of symbolic links"),
    }
    for path, (state, at, reason) in ends.items():
        facts = look_at_directory(f"{top}/{path}", "nobody")
        assert (facts.state, facts.at) == (state, f"{top}/{at}")
        assert facts.reason.endswith(reason)
        assert facts.writing.status == "unknown"


def test_a_link_of_root_or_of_the_user_is_followed(top: Path) -> None:
    cache = make(top / "cache", NOBODY)
    (top / "absolute").symlink_to(cache)
    (top / "relative").symlink_to("./cache/../cache")
    os.lchown(top / "relative", NOBODY, NOBODY)
    for name in ("absolute", "relative"):
        facts = look_at_directory(f"{top}/{name}/.", "nobody")
        assert (facts.state, facts.writing.status) == ("a directory", "pass")
        assert facts.real_path == str(cache)


def test_a_link_that_a_user_planted_is_followed_as_that_user(top: Path) -> None:
    """Who may write to a folder above the cache cannot let root write elsewhere."""
    outside = make(top / "outside")
    before = snapshot(outside)
    home = make(top / "home", NOBODY)
    for link, target in (("cache", outside), ("way", top)):
        (home / link).symlink_to(target)
        os.lchown(home / link, NOBODY, NOBODY)
    for path in ("home/cache", "home/way/outside"):
        facts = look_at_directory(f"{top}/{path}", None)
        assert (facts.user, facts.uid, facts.state) == ("nobody", NOBODY, "a directory")
        assert facts.writing == Proof("fail", "[Errno 13] Permission denied")
        facts = look_at_directory(f"{top}/{path}", "daemon")
        assert facts.state == folder_states.FOREIGN_LINK
        assert "is a link of nobody" in facts.reason
    assert snapshot(outside) == before


def test_links_planted_inside_lead_nowhere(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name that the trials use is planted, as whoever can write there could do."""
    outside = make(top / "outside")
    (outside / "victim").write_text("untouched")
    before = snapshot(outside)
    cache = make(top / "cache", 0, 0o777)
    names = ["lock", "file", "new", "0", "0-1", "done-0", "secret"]
    monkeypatch.setattr(directory, "pick_trial_name", lambda: "secret")
    for name in names:
        (cache / name).symlink_to(outside if name in ("secret", "new") else outside / "victim")
    facts = look_at_directory(str(cache), None)
    assert facts.writing == Proof("fail", "[Errno 17] File exists")
    assert snapshot(outside) == before
    assert (outside / "victim").read_text() == "untouched"
    assert sorted(path.name for path in cache.iterdir()) == sorted(names)


def test_a_folder_that_is_swapped_for_a_link_is_not_entered(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody wins the race between the making of our folder and its opening."""
    outside = make(top / "outside")
    cache = make(top / "cache", 0, 0o777)
    before = snapshot(outside)
    plain = os.mkdir

    def swap(name: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        if name.startswith(trial_folder.PREFIX):
            os.symlink(outside, name, dir_fd=dir_fd)
        else:
            plain(name, mode, dir_fd=dir_fd)

    monkeypatch.setattr(directory.os, "mkdir", swap)
    facts = look_at_directory(str(cache), None)
    assert facts.writing.status == "unknown"
    assert snapshot(outside) == before


def test_a_folder_that_is_swapped_for_one_of_somebody_else_is_not_used(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = make(top / "cache", 0, 0o777)
    plain = os.mkdir

    def swap(name: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        plain(name, mode, dir_fd=dir_fd)
        os.chown(name, NOBODY, NOBODY, dir_fd=dir_fd, follow_symlinks=False)

    monkeypatch.setattr(directory.os, "mkdir", swap)
    facts = look_at_directory(str(cache), None)
    assert facts.writing.status == "unknown"
    assert "belongs to uid 65534: it was swapped" in facts.writing.trouble


@pytest.mark.parametrize("user", ["no-such-user-here"])
def test_nobody_is_nobody(top: Path, user: str) -> None:
    facts = look_at_directory(str(top), user)
    assert facts == FolderFacts(str(top), user, "unknown", f"this host has no user {user}")


def test_who_is_not_root_cannot_look_as_another(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory.os, "geteuid", lambda: 1000)
    assert look_at_directory(str(top), "root").reason == "only root can look as root"


@pytest.mark.slow
def test_a_hung_mount_is_unknown_after_the_time_limit(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "open_directory", lambda _path: time.sleep(600))
    facts = look_at_directory(str(top), "nobody", seconds=0.5)
    assert (facts.state, facts.reason) == ("unknown", f"{top}: no answer within 0.5 s")
    assert {proof.status for proof in facts.proofs.values()} == {"unknown"}


@pytest.mark.slow
def test_one_operation_that_hangs_leaves_the_others_and_no_folder(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = make(top / "cache")
    monkeypatch.setattr(proofs.fcntl, "flock", lambda _handle, _how: time.sleep(600))
    facts = look_at_directory(str(cache), None, seconds=4)
    assert facts.proofs == {**PROVED, "flock": Proof("unknown", "no answer within 4 s")}
    assert not list(cache.iterdir())


def mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")


@pytest.mark.parametrize("kind", ["tmpfs", "overlay", "ext4", "vfat"])
def test_a_file_system_is_told_by_its_name(top: Path, kind: str) -> None:
    point = make(top / "point")
    if kind == "overlay":
        mount("-t", "tmpfs", "none", str(top / "point"))
        folders = {name: make(point / name) for name in ("lower", "upper", "work", "merged")}
        options = ",".join(f"{name}dir={folders[name]}" for name in ("lower", "upper", "work"))
        point = folders["merged"]
        mount("-t", "overlay", "none", "-o", options, str(point))
    elif kind == "tmpfs":
        mount("-t", "tmpfs", "none", "-o", "size=1m", str(point))
    else:
        image = top / "image"
        image.write_bytes(b"\0" * 2**23)
        if shutil.which(f"mkfs.{kind}") is None:
            pytest.skip(f"no mkfs.{kind}")
        subprocess.run([f"mkfs.{kind}", str(image)], capture_output=True, check=True)
        mount("-o", "loop", str(image), str(point))
    try:
        facts = look_at_directory(str(point), None)
        assert (facts.filesystem, facts.mount) == (kind, str(point))
        assert facts.writing == Proof("pass")
        assert facts.proofs == PROVED
        assert (facts.free_inodes is None) == (kind == "vfat")
    finally:
        subprocess.run(["umount", "-R", str(top / "point")], check=True)


@pytest.mark.parametrize("proof", ["O_EXCL", "rename", "directory rename"])
def test_a_proof_that_failed_has_no_process_left(
    top: Path, monkeypatch: pytest.MonkeyPatch, proof: str
) -> None:
    """What still holds the folder keeps its file system from being unmounted."""
    folder, proofs_write = os.open(make(top / "proof"), os.O_RDONLY), proofs._write

    def fail(*_words: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "full")

    def race(_folder: int, mine: bytes) -> int:
        if mine == b"1":
            fail()
        time.sleep(0.3)
        return 0

    def write(folder: int, name: str, content: bytes) -> None:
        if name == "new":
            fail()
        proofs_write(folder, name, content)

    def prove() -> str:
        with suppress(OSError):
            proofs.PROOFS[proof](folder)
        try:
            return f"{os.waitpid(-1, os.WNOHANG)}"
        except ChildProcessError:
            return ""

    monkeypatch.setattr(proofs, "_race", race)
    monkeypatch.setattr(proofs, "_write", write)
    monkeypatch.setattr(proofs, "_make_full_one", fail)
    assert run_in_children([prove], 5)[0].value == ""
    os.close(folder)


@pytest.mark.slow
def test_a_full_and_a_read_only_file_system_are_seen(top: Path) -> None:
    point = make(top / "point")
    mount("-t", "tmpfs", "none", "-o", "size=16k", str(point))
    try:
        (point / "big").write_bytes(b"x" * 16384)
        facts = look_at_directory(str(point), None)
        assert facts.writing == Proof("fail", "[Errno 28] No space left on device")
        assert facts.free_bytes == 0
        mount("-o", "remount,ro", str(point))
        facts = look_at_directory(str(point), None)
        assert facts.writing == Proof("fail", "[Errno 30] Read-only file system")
        assert facts.read_only
    finally:
        subprocess.run(["umount", str(point)], check=True)


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.slow
def test_a_file_system_whose_server_is_silent_or_gone_ends_in_time(
    top: Path, is_there: bool
) -> None:
    """A FUSE mount of which nobody answers the requests is what a hung network mount is."""
    point = make(top / "point")
    try:
        server = os.open("/dev/fuse", os.O_RDWR)
    except OSError as exc:
        pytest.skip(f"no FUSE here: {exc}")
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0,allow_other"
    words = ["mount", "-i", "-t", "fuse", "-o", options, "none", str(point)]
    done = subprocess.run(words, pass_fds=[server], capture_output=True, check=False)
    if done.returncode or not is_there:
        os.close(server)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr!r}")
    try:
        facts = look_at_directory(f"{point}/cache", None, seconds=1)
        assert facts.writing.status == "unknown"
        if is_there:
            assert (facts.state, facts.reason) == (
                "unknown",
                f"{point}/cache: no answer within 1 s",
            )
        else:
            assert facts.state == folder_states.BROKEN
            assert facts.reason.endswith("Transport endpoint is not connected")
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True)
        if is_there:
            os.close(server)


def _leave_a_process() -> int:
    """Leave a process of a session of its own, whose parent is gone; return its number."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        child = os.fork()
        if child:
            os.write(writer, str(child).encode())
            os._exit(0)
        time.sleep(600)
        os._exit(0)
    return int(os.read(reader, 20))


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")
@pytest.mark.parametrize("named", [NOBODY, 0])
def test_nothing_of_a_user_outlives_a_look(top: Path, named: int) -> None:
    """Whether root names the user or becomes whose the directory is."""
    cache = make(top / "cache", NOBODY)
    left = run_there(named, str(cache), _leave_a_process, 5.0).value
    assert not os.path.exists(f"/proc/{left}")


@pytest.mark.parametrize(
    ("kind", "uid", "quota", "free"),
    [
        ("tmpfs", 1000, (600, 100), 500),
        ("tmpfs", 1000, (100, 600), 0),
        ("tmpfs", 1000, (9000, 100), 1000),
        ("tmpfs", 1000, (0, 100), 1000),
        ("tmpfs", 1000, None, 1000),
        ("tmpfs", 0, (600, 100), 1200),
        ("ext4", 0, (600, 100), 1200),
        ("ext4", 1000, (600, 100), 1000),
    ],
)
def test_a_quota_bounds_what_is_free_in_a_tmpfs_and_root_has_what_is_kept(
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    uid: int,
    quota: tuple[int, int] | None,
    free: int,
) -> None:
    def ask(asked: int, handle: int) -> tuple[int, int]:
        assert (asked, handle) == (uid, 5)
        if quota is None:
            raise OSError("no quotas")
        return quota

    monkeypatch.setattr(directory, "ask_quota", ask)
    monkeypatch.setattr(directory.os, "geteuid", lambda: uid)
    sizes = os.statvfs_result((100, 100, 20, 12, 10, 0, 0, 0, 0, 255))
    assert directory._count_free(5, sizes, kind) == free


def test_a_file_system_that_states_no_size_is_not_full() -> None:
    """A tmpfs that was mounted with size=0 has no end."""
    sizes = os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))
    assert directory._count_free(5, sizes, "tmpfs") == UNLIMITED
