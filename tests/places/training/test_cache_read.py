# SPDX-License-Identifier: GPL-3.0-or-later
"""Every file of a cache is looked at once, nothing is followed out of it, and nothing is changed."""

from __future__ import annotations

import io
import os
import pickle
import pwd
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from mlhost_limits.host.open_directory import ObstacleError
from mlhost_limits.training import cache_open_read
from mlhost_limits.training import cache_read as cache_files
from mlhost_limits.training.cache_read import LateError, check_files, survey_files
from mlhost_limits.training.open_files_read import find_open_files

from tests.worlds.archives import make_pt, make_safetensors

OLD = (0, 0)


def fill(top: Path) -> None:
    """Make a cache with something of every kind in it."""
    deep = top / "a" / "b"
    deep.mkdir(parents=True)
    (top / "whole.pt").write_bytes(make_pt())
    (deep / "whole.safetensors").write_bytes(make_safetensors())
    (top / "cut.pt").write_bytes(make_pt()[:-1])
    (deep / "cut.safetensors").write_bytes(make_safetensors()[:-1])
    (top / "empty.pth").write_bytes(b"")
    (top / "legacy.pt").write_bytes(pickle.dumps({"a": 1}, protocol=2))
    (top / "of old.pt").write_bytes(b"\x80\2cjoblib\nx\n")
    (top / ".hidden.npy").write_bytes(b"")
    (top / "shard.tar.lock").write_text("")
    (top / "pipe").mkdir()
    os.mkfifo(top / "pipe" / "pipe")
    (top / "notes.txt").write_text("")
    (top / "x.pt.tmp").write_text("1234")
    (top / "new.pt.tmp").write_text("")
    (top / "shard.tar.temp999999999").write_text("")
    (top / f"shard.tar.temp{os.getpid()}").write_text("")
    os.utime(top / "x.pt.tmp", OLD)
    (top / "folder.tmp").mkdir()
    os.mkfifo(top / "pipe.pt")
    os.mkfifo(top / "old.tmp")
    os.utime(top / "old.tmp", OLD)
    (top / "folder.pt").mkdir()
    (top / ".quarantine").mkdir()
    (top / ".quarantine" / "cut.pt").write_bytes(b"")


def told(top: Path, deep: bool = False) -> dict[str, str]:
    return {one.path: one.status for one in check_files(str(top), deep)}


EXPECTED = {
    "whole.pt": "sound",
    "a/b/whole.safetensors": "sound",
    "cut.pt": "corrupt",
    "a/b/cut.safetensors": "corrupt",
    "empty.pth": "corrupt",
    ".hidden.npy": "corrupt",
    "legacy.pt": "sound",
    "of old.pt": "unknown",
    "notes.txt": "skipped",
    "pipe/pipe": "skipped",
    "pipe.pt": "unknown",
    "folder.pt": "unknown",
    "x.pt.tmp": "leftover",
    "shard.tar.temp999999999": "leftover",
}


def test_every_file_is_looked_at(tmp_path: Path) -> None:
    fill(tmp_path)
    handles = len(os.listdir("/proc/self/fd"))
    assert told(tmp_path) == EXPECTED
    assert len(os.listdir("/proc/self/fd")) == handles


def test_a_survey_counts_and_names(tmp_path: Path) -> None:
    fill(tmp_path)
    survey = survey_files(str(tmp_path))
    assert survey.counts == {
        "sound": 3,
        "corrupt": 4,
        "unknown": 3,
        "leftover": 2,
        "closed": 0,
        "skipped": 2,
        "written": 0,
    }
    assert sorted(one.path for one in survey.corrupt) == [
        ".hidden.npy",
        "a/b/cut.safetensors",
        "cut.pt",
        "empty.pth",
    ]
    assert sorted((one.path, one.reason) for one in survey.lists["unknown"]) == [
        ("folder.pt", "is a directory, not a file"),
        ("of old.pt", "is a pickle that cannot be read without its classes"),
        ("pipe.pt", "is a named pipe, not a file"),
    ]
    assert sorted((one.path, one.reason) for one in survey.lists["skipped"]) == [
        ("notes.txt", "format unknown"),
        ("pipe/pipe", "a named pipe"),
    ]
    assert (survey.number, survey.reason) == (12, "")


def test_links_are_followed_to_files_alone(tmp_path: Path) -> None:
    """The cache of Hugging Face is one of links; a device that is opened may do something."""
    cache, outside = tmp_path / "cache", tmp_path / "outside"
    cache.mkdir()
    outside.mkdir()
    (outside / "cut.pt").write_bytes(b"")
    (cache / "blob").write_bytes(make_safetensors())
    (cache / "model.safetensors").symlink_to("blob")
    (cache / "gone.safetensors").symlink_to("nowhere")
    (cache / "device.pt").symlink_to("/dev/null")
    (cache / "folder").symlink_to(outside)
    (cache / "folder.pt").symlink_to(outside)
    found = {one.path: (one.status, one.reason) for one in check_files(str(cache))}
    assert found == {
        "blob": ("skipped", "format unknown"),
        "folder": ("skipped", "format unknown"),
        "model.safetensors": ("sound", ""),
        "gone.safetensors": ("corrupt", "is a link that leads nowhere"),
        "device.pt": ("unknown", "is a link to a device, not to a file"),
        "folder.pt": ("unknown", "is a link to a folder, not to a file"),
    }


def test_a_directory_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(ObstacleError, match="does not exist"):
        list(check_files(f"{tmp_path}/none"))
    assert survey_files(f"{tmp_path}/none").reason == f"{tmp_path}/none does not exist"


def test_a_tree_without_a_floor_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_files, "_DEEPEST", 2)
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (checked,) = check_files(str(tmp_path))
    assert checked[:3] == ("a/b", "unknown", "lies too deep")


def test_what_may_not_be_read_is_told_with_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed.pt").write_bytes(make_pt())
    (tmp_path / "folder").mkdir()
    plain = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path in ("closed.pt", "folder"):
            raise PermissionError(13, "Permission denied")
        return plain(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(cache_files.os, "open", refuse)
    (tmp_path / "closed.pt").chmod(0o600)
    owner = pwd.getpwuid(os.getuid()).pw_name
    found = {one.path: (one.status, one.reason) for one in check_files(str(tmp_path))}
    assert found == {
        "closed.pt": ("closed", f"is {owner}'s, with mode 0600: Permission denied"),
        "folder": ("closed", f"is {owner}'s, with mode 0755: Permission denied"),
    }
    monkeypatch.setattr(cache_files.os, "open", plain)


def test_what_the_disk_does_not_give_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.pt").write_bytes(make_pt())

    def fail(*_words: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    (checked,) = check_files(str(tmp_path))
    assert checked[:3] == ("x.pt", "unknown", "cannot be read: Input/output error")


WRITER = """
import sys, time
content = open(sys.argv[1], "rb").read()
time.sleep(0.2)
open(sys.argv[2], "wb").write(content[:-1])
print(1, flush=True)
time.sleep(0.6)
open(sys.argv[2], "ab").write(content[-1:])
"""


def test_a_file_that_is_whole_a_second_later_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sees who has it open, as in another container."""
    monkeypatch.setattr(cache_open_read, "YOUNG", 3.0)
    source, cache = tmp_path / "source", tmp_path / "cache"
    cache.mkdir()
    source.write_bytes(make_pt())
    words = [sys.executable, "-c", WRITER, str(source), str(cache / "now.pt")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        survey = survey_files(str(cache))
        process.wait()
    assert (survey.counts["corrupt"], survey.counts["sound"]) == (0, 1)


def test_what_changed_between_two_looks_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the clock of a file server says that it is old."""
    for name in ("grows.pt", "stays.pt", "goes.pt", "heals.pt"):
        (tmp_path / name).write_bytes(make_pt()[:-9])
        os.utime(tmp_path / name, OLD)

    def write(_changed: float) -> None:
        (tmp_path / "grows.pt").write_bytes(make_pt()[:-5])
        os.utime(tmp_path / "grows.pt", OLD)
        (tmp_path / "goes.pt").unlink()
        (tmp_path / "heals.pt").write_bytes(make_pt())

    monkeypatch.setattr(cache_files, "wait_for", write)
    survey = survey_files(str(tmp_path))
    assert [one.path for one in survey.corrupt] == ["stays.pt"]
    assert [one.path for one in survey.lists["written"]] == ["grows.pt"]
    assert (survey.counts["sound"], survey.number) == (1, 3)


def test_what_was_looked_at_once_and_is_young_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_open_read, "YOUNG", 30.0)
    for name in ("young.pt", "old.pt"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "old.pt", OLD)

    def end(_changed: float) -> None:
        raise LateError("in 1 s")

    monkeypatch.setattr(cache_files, "wait_for", end)
    survey = survey_files(str(tmp_path))
    assert survey.unfinished == "2 files were looked at in 1 s; the others were not"
    assert [one.path for one in survey.corrupt] == ["old.pt"]
    assert [one.path for one in survey.lists["unknown"]] == ["young.pt"]


def test_checksums_find_what_the_ends_do_not(tmp_path: Path) -> None:
    content = bytearray(make_pt((b"\7" * 4096,)))
    at = content.find(b"\7" * 4096)
    content[at : at + 100] = b"\0" * 100
    (tmp_path / "zeroed.pt").write_bytes(content)
    (tmp_path / "whole.pt").write_bytes(make_pt())
    assert told(tmp_path) == {"zeroed.pt": "sound", "whole.pt": "sound"}
    found = {one.path: one.reason for one in check_files(str(tmp_path), deep=True)}
    assert found == {"zeroed.pt": "has a wrong checksum at archive/data/0", "whole.pt": ""}


def test_an_archive_without_checksums_is_no_damaged_one(tmp_path: Path) -> None:
    """torch can be told to compute none, and writes zeros."""
    content = make_pt((b"\7" * 4096,))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for row in archive.infolist():
            content = content.replace(row.CRC.to_bytes(4, "little"), b"\0" * 4)
    (tmp_path / "plain.pt").write_bytes(content)
    assert told(tmp_path) == {"plain.pt": "sound"}
    (checked,) = check_files(str(tmp_path), deep=True)
    assert checked[1:3] == ("unknown", "was written without checksums")


def test_an_archive_that_cannot_be_unpacked_is_said(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "odd.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"x" * 1000)
    content = bytearray((tmp_path / "odd.pt").read_bytes())
    content[46:48] = b"\xff\xff"
    (tmp_path / "odd.pt").write_bytes(content)
    (checked,) = check_files(str(tmp_path), deep=True)
    assert checked.status == "corrupt"
    assert checked.reason.startswith("cannot be unpacked")


def test_ctrl_c_ends_it_at_once_and_says_what_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        (tmp_path / f"{number}.pt").write_bytes(b"")
    seen: list[int] = []

    def stop(number: int) -> None:
        seen.append(number)
        if number == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(cache_files, "_PACE", -1)
    with pytest.raises(KeyboardInterrupt) as raised:
        survey_files(str(tmp_path), tell=stop)
    assert seen == [1, 2, 3, 4]
    told = r".*: interrupted after 4 files, 4 of them damaged \(.\.pt, .\.pt, .\.pt, .\.pt\); the others"
    assert re.match(told, str(raised.value))


MANY = """
import os, resource, sys
import tests.conftest
from mlhost_limits.training.cache_read import survey_files
survey_files("/none")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
survey = survey_files(sys.argv[1])
print(survey.number, len(survey.corrupt), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_many_files_do_not_fill_the_memory(tmp_path: Path) -> None:
    """Links to one inode stand for a million files; the growth is that of the lists alone."""
    (tmp_path / "0.pt").write_bytes(b"")
    for number in range(1, 30000):
        os.link(tmp_path / "0.pt", tmp_path / f"{number}.pt")
    done = subprocess.run(
        [sys.executable, "-c", MANY, str(tmp_path)], capture_output=True, text=True, check=True
    )
    number, kept, grown = map(int, done.stdout.split())
    assert (number, kept) == (30000, 1000)
    assert grown < 3000  # KiB


def test_who_writes_a_file_is_found(tmp_path: Path) -> None:
    words = "import sys,time; a=open('r'); b=open('w','w'); print(1, flush=True); time.sleep(60)"
    (tmp_path / "r").write_text("")
    with subprocess.Popen(
        [sys.executable, "-c", words], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        process.stdout.readline()
        found = sorted(find_open_files(str(tmp_path)))
        process.kill()
    assert found == [(process.pid, f"{tmp_path}/r", False), (process.pid, f"{tmp_path}/w", True)]


def test_processes_that_cannot_be_seen_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "12" / "fd").mkdir(parents=True)
    (tmp_path / "12" / "fd" / "1").write_text("")
    (tmp_path / "12" / "fd" / "2").symlink_to("/data/x")
    (tmp_path / "13").mkdir()
    (tmp_path / "self").mkdir()
    assert list(find_open_files("/data", str(tmp_path))) == [(12, "/data/x", False)]
    (tmp_path / "12" / "fdinfo").mkdir()
    (tmp_path / "12" / "fdinfo" / "2").write_text("pos:\t0\nflags:\t0100002\n")
    assert list(find_open_files("/data/", str(tmp_path))) == [(12, "/data/x", True)]


@pytest.mark.parametrize(
    ("device", "held", "counts"),
    [("8:1", "x", True), ("8:1", "other", False), ("0:9", "x", False), ("", "x", False)],
    ids=["the file", "another file", "another file system", "no such mount"],
)
def test_a_path_of_somebody_with_mounts_of_their_own_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, held: str, counts: bool
) -> None:
    """A tmpfs over /tmp makes any path: what is open must be the very file."""
    folder, proc = tmp_path / "data", tmp_path / "proc"
    folder.mkdir()
    for name in ("x", "other"):
        (folder / name).write_text("")
    for process, row in (("self", "1 0 8:1 / / rw"), ("12", f"7 0 {device} / / rw")):
        (proc / process / "ns").mkdir(parents=True)
        (proc / process / "ns" / "mnt").write_text("")
        (proc / process / "mountinfo").write_text(f"{row}\n" if device else "")
    (proc / "12" / "fd").mkdir()
    (proc / "12" / "fdinfo").mkdir()
    (proc / "12" / "fd" / "2").symlink_to(folder / held)
    (proc / "12" / "fdinfo" / "2").write_text("flags:\t0100002\nmnt_id:\t7\n")
    told = str(folder / "x")
    read = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path: told if "/fd/" in str(path) else read(path))
    found = [one.path for one in find_open_files(str(folder), str(proc))]
    assert found == ([told] if counts else [])
