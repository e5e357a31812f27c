# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a user's cache are looked at by that user; root opens what is root's and no more."""

from __future__ import annotations

import os
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlhost_limits.training import cache_read as cache_files
from mlhost_limits.training import files_check as cache_survey
from mlhost_limits.training.cache_read import check_files
from mlhost_limits.training.files_check import check_cache_files, survey_there
from mlhost_limits.training.output_check import read_checkpoints
from mlhost_limits.training.policy import Training

from tests.worlds.archives import make_pt, make_safetensors

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else is root's")
NOBODY = 65534
STRANGE = "is nobody's, and only that user looks at it"


@pytest.fixture
def cache() -> Iterator[Path]:
    """Give a directory of a user's, with a sound file and a damaged one."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "cache"
        path.mkdir()
        os.chmod(name, 0o755)
        (path / "whole.pt").write_bytes(make_pt())
        (path / "cut.pt").write_bytes(make_pt()[:-1])
        (Path(name) / "secret").mkdir(mode=0o700)
        (Path(name) / "secret/of root.safetensors").write_bytes(make_safetensors())
        give(path)
        yield path


def give(path: Path, uid: int = NOBODY) -> None:
    for base, folders, files in os.walk(path):
        for one in (base, *(f"{base}/{name}" for name in (*folders, *files))):
            os.lchown(one, uid, uid)


def test_a_user_sees_what_a_user_may(cache: Path) -> None:
    (cache / "out.safetensors").symlink_to("../secret/of root.safetensors")
    give(cache)
    survey = survey_there(str(cache), NOBODY)
    assert {name: number for name, number in survey.counts.items() if number} == {
        "sound": 1,
        "corrupt": 1,
        "closed": 1,
    }
    assert [one.path for one in survey.corrupt] == ["cut.pt"]
    reason = "leads into a directory that this user may not enter: Permission denied"
    assert [one[:3] for one in survey.lists["closed"]] == [("out.safetensors", "closed", reason)]
    (one,) = [one for one in check_cache_files(Training(cache_dir=str(cache))) if one.causes]
    assert "cut.pt" in one.causes[0].text


def test_what_who_will_run_may_not_read_fails_with_its_mode(cache: Path) -> None:
    """Of a user who is named, and of nobody else: who owns a cache of root's need not run."""
    (cache / "cut.pt").unlink()
    (cache / "closed").mkdir(mode=0o700)
    (cache / "roots.pt").write_bytes(make_pt())
    (cache / "roots.pt").chmod(0o640)
    os.chown(cache, 0, 0)
    found = list(check_cache_files(Training(cache_dir=str(cache), user="nobody")))
    assert [(one.status, one.requirement.item) for one in found] == [
        ("pass", "damaged files"),
        ("fail", "closed files"),
    ]
    (cause,) = found[1].causes
    assert (cause.code, cause.remedy.commands) == ("folder-closed", ())
    told = {one.strip() for one in cause.text.split(";")}
    assert told == {
        "roots.pt is root's, with mode 0640: Permission denied",
        "closed is root's, with mode 0700: Permission denied",
    }
    os.chown(cache, NOBODY, NOBODY)
    (one, doubt) = check_cache_files(Training(cache_dir=str(cache)))
    assert (one.status, doubt.status) == ("pass", "unknown")
    assert "Permission denied" in doubt.observation.reason


def test_a_cache_of_what_nobody_may_read_passes_nothing(cache: Path) -> None:
    for path in cache.iterdir():
        os.chown(path, 0, 0)
        path.chmod(0o600)
    os.mkfifo(cache / "pipe.pt")
    found = list(check_cache_files(Training(cache_dir=str(cache), user="nobody")))
    assert [one.status for one in found] == ["fail", "unknown"]
    assert found[1].observation.reason == (
        "Not looked at: 1 file: is a named pipe, not a file (pipe.pt)"
    )


def test_a_user_s_files_take_a_share_of_the_time(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One archive may say that it is endless: what else is asked of the run is told all the same."""
    monkeypatch.setattr(cache_files, "check_open_file", lambda *_words: time.sleep(60))
    training = Training(cache_dir=str(cache), deep=True)
    told = [one.observation.reason for one in check_cache_files(training, 1.0)]
    assert any("0 files were looked at in 0.7 s; the others were not" in one for one in told), told


def test_root_opens_what_is_roots(cache: Path) -> None:
    """A directory of root's in which others have files, such as one with mode 1777."""
    os.chown(cache, 0, 0)
    os.chown(cache / "whole.pt", 0, 0)
    (cache / "folder").mkdir()
    (cache / "folder/x.pt").write_bytes(make_pt())
    (cache / "link.pt").symlink_to("/proc/kmsg")
    (cache / "away.pt").symlink_to("whole.pt")
    (cache / "mine.pt").symlink_to("whole.pt")
    (cache / "gone.pt").symlink_to("folder/none/x.pt")
    (cache / "past.pt").symlink_to("folder/x.pt")
    for name in ("folder", "folder/x.pt", "link.pt", "away.pt"):
        os.lchown(cache / name, NOBODY, NOBODY)
    found = {one.path: (one.status, one.reason) for one in check_files(str(cache))}
    assert found == {
        "whole.pt": ("sound", ""),
        "mine.pt": ("sound", ""),
        "gone.pt": ("corrupt", "is a link that leads nowhere"),
        **dict.fromkeys(
            ("cut.pt", "folder", "link.pt", "away.pt", "past.pt"), ("unknown", STRANGE)
        ),
    }
    os.chown(cache, NOBODY, NOBODY)
    assert cache_survey.survey_files(str(cache)).reason == STRANGE


@pytest.mark.slow
def test_a_look_that_takes_too_long_tells_what_it_saw(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.pread

    def hang(handle: int, size: int, offset: int) -> bytes:
        if os.readlink(f"/proc/self/fd/{handle}").endswith("z.pt"):
            os.read(os.pipe()[0], 1)
        return plain(handle, size, offset)

    (cache / "folder").mkdir()
    (cache / "folder/z.pt").write_bytes(make_pt())
    give(cache)
    monkeypatch.setattr(os, "pread", hang)
    monkeypatch.setattr(cache_survey, "SURVEY_LIMIT", 6.0)
    survey = survey_there(str(cache), NOBODY)
    number = survey.number
    assert survey.unfinished == f"{number} files were looked at in 6 s; the others were not"
    reasons = [one.observation.reason for one in check_cache_files(Training(cache_dir=str(cache)))]
    assert survey.unfinished in reasons


def test_a_child_that_ends_is_unknown(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_survey, "survey_files", lambda *_given: os._exit(3))
    assert survey_there(str(cache), NOBODY).reason == f"{cache}: ended with status 3"


def test_names_have_an_end(cache: Path) -> None:
    """However many files there are, and however long their names, an answer is small."""
    deep = cache
    for number in range(15):
        deep = deep / (f"{number}" * 100)
    deep.mkdir(parents=True)
    for number in range(300):
        (deep / f"{number}{'n' * 200}.pt").touch()
    (cache / os.fsdecode(b"\xff\n\x1b.pt")).touch()
    give(cache)
    survey = survey_there(str(cache), NOBODY)
    assert survey.counts["corrupt"] == 302
    assert 1 <= len(survey.corrupt) < 20


@pytest.mark.slow
def test_files_that_are_made_to_hurt_end_in_time(cache: Path) -> None:
    """Pipes, sparse files without an end, archives that state what they do not have."""
    os.mkfifo(cache / "pipe.pt")
    os.truncate(cache / "cut.pt", 2**42)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 9, 9, 2**31, 2**31, 0)
    with open(cache / "huge.pt", "wb") as file:
        file.write(b"PK\3\4")
        file.seek(2**32)
        file.write(end)
    with open(cache / "long.safetensors", "wb") as file:
        file.write(struct.pack("<Q", 99_999_999))
        file.truncate(2**40)
    (cache / "deep.safetensors").write_bytes(struct.pack("<Q", 10**6) + b'{"a":' * 200_000)
    (cache / "device.pt").symlink_to("/dev/zero")
    (cache / "process.pt").symlink_to("/proc/kmsg")
    (cache / "memory.pt").symlink_to("/proc/self/mem")
    give(cache)
    for deep in (False, True):
        survey = survey_there(str(cache), NOBODY, deep)
        assert (survey.reason, survey.unfinished) == ("", "")
        assert survey.counts["sound"] == 1


def test_checkpoints_of_a_user_are_read_as_that_user(cache: Path) -> None:
    """A link to /dev opens no device, and what root alone may read stays unread."""
    (cache / "checkpoint-7").symlink_to("../cache")
    (cache / "checkpoint-8").mkdir()
    for name in ("trainer_state.json", ".hidden", *map(str, range(50))):
        (cache / "checkpoint-8" / name).touch()
    (cache / "checkpoint-8/trainer_state.json").write_text("{}")
    (cache / "checkpoint-8/model.safetensors").write_bytes(make_safetensors())
    os.mkfifo(cache / "checkpoint-8/scaler.pt")
    (cache / "checkpoint-8/rng_state.pth").touch()
    give(cache)
    seven, eight = read_checkpoints(str(cache), 0)
    assert (seven.number, seven.is_directory) == (7, True)
    damaged = (("rng_state.pth", "is empty"), ("scaler.pt", "is a named pipe, not a file"))
    assert (eight.damaged, len(eight.names) < 20) == (damaged, True)
    (cache / "checkpoint-8/model.safetensors").chmod(0o600)
    os.chown(cache / "checkpoint-8/model.safetensors", 0, 0)
    closed = ("model.safetensors", "is root's, with mode 0600: Permission denied")
    assert closed in read_checkpoints(str(cache), NOBODY)[-1].damaged
    assert "trainer_state.json" in eight.names
    (cache / "checkpoint-9").symlink_to("/dev")
    assert ("trainer_state.json", "is missing") in read_checkpoints(str(cache), 0)[-1].damaged


def test_checkpoints_that_cannot_be_read_are_said(cache: Path) -> None:
    with pytest.raises(OSError, match="none does not exist"):
        read_checkpoints(f"{cache}/none", 0)
    (cache / "checkpoint-1").symlink_to("../secret")
    with pytest.raises(OSError, match=r"\[Errno 13\] Permission denied"):
        read_checkpoints(str(cache), NOBODY)
    cache.chmod(0)
    with pytest.raises(OSError, match=r"\[Errno 13\] Permission denied"):
        read_checkpoints(str(cache), NOBODY)
