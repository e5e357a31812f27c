# SPDX-License-Identifier: GPL-3.0-or-later
"""Every file of a cache is looked at once, nothing is followed out of it, and nothing is changed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from mlhost_limits.host.open_directory import ObstacleError
from mlhost_limits.training import cache_read as cache_files
from mlhost_limits.training.cache_read import check_files, survey_files
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
    (top / "legacy.pt").write_bytes(b"\x80\2abc")
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
    "legacy.pt": "unknown",
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
    assert survey.counts == {"sound": 2, "corrupt": 3, "unknown": 1, "leftover": 2}
    assert sorted(one.path for one in survey.corrupt) == [
        "a/b/cut.safetensors",
        "cut.pt",
        "empty.pth",
    ]
    assert [one.path for one in survey.unknown] == ["legacy.pt"]
    assert (survey.number, survey.reason) == (8, "")


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
    assert told(cache) == {"model.safetensors": "sound", "gone.safetensors": "corrupt"}


def test_a_directory_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(ObstacleError, match="does not exist"):
        list(check_files(f"{tmp_path}/none"))
    assert survey_files(f"{tmp_path}/none").reason == f"{tmp_path}/none does not exist"


def test_a_tree_without_a_floor_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_files, "_DEEPEST", 2)
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (checked,) = check_files(str(tmp_path))
    assert checked == ("a/b", "unknown", "lies too deep")


def test_what_cannot_be_read_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed.pt").write_bytes(make_pt())
    (tmp_path / "folder").mkdir()
    plain = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path in ("closed.pt", "folder"):
            raise PermissionError(13, "Permission denied")
        return plain(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(cache_files.os, "open", refuse)
    found = {one.path: one.reason for one in check_files(str(tmp_path))}
    reason = "cannot be read: Permission denied"
    assert found == {"closed.pt": reason, "folder": reason}


def test_checksums_find_what_the_ends_do_not(tmp_path: Path) -> None:
    content = bytearray(make_pt((b"\7" * 4096,)))
    at = content.find(b"\7" * 4096)
    content[at : at + 100] = b"\0" * 100
    (tmp_path / "zeroed.pt").write_bytes(content)
    (tmp_path / "whole.pt").write_bytes(make_pt())
    assert told(tmp_path) == {"zeroed.pt": "sound", "whole.pt": "sound"}
    found = {one.path: one.reason for one in check_files(str(tmp_path), deep=True)}
    assert found == {"zeroed.pt": "has a wrong checksum at archive/data/0", "whole.pt": ""}


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
