# SPDX-License-Identifier: GPL-3.0-or-later
"""The cache of a run is judged on the disk that it lies on, as the user who will run."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mlhost_limits.core.finding import Finding
from mlhost_limits.training import cache_check
from mlhost_limits.training.cache_check import check_cache, find_user
from mlhost_limits.training.files_check import check_cache_files, make_progress
from mlhost_limits.training.policy import Training

from tests.worlds.archives import make_pt


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "WIDS_CACHE", "WDS_CACHE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def top() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def look(**stated: Any) -> list[Finding]:
    return list(check_cache(Training(**stated)))


def told(findings: list[Finding]) -> dict[str, str]:
    return {one.requirement.item: one.status for one in findings}


def test_without_a_cache_nothing_is_asked() -> None:
    assert not look()


def test_a_sound_cache_passes(top: Path) -> None:
    found = look(cache_dir=str(top), cache_free=1, shards=8, workers=4, ranks_per_node=2)
    assert set(told(found).values()) == {"pass"}
    assert list(told(found)) == [
        "directory",
        "flock",
        "O_EXCL",
        "rename",
        "directory rename",
        "file system",
        "free space",
        "free inodes",
        "shards",
    ]


def test_a_cache_that_is_a_file_fails_without_more(top: Path) -> None:
    (top / "cache").write_text("")
    found = look(cache_dir=f"{top}/cache", cache_free=1)
    assert told(found) == {"directory": "fail", "free space": "unknown"}


@pytest.mark.slow
@pytest.mark.parametrize("makes", [True, False])
def test_a_cache_that_the_run_makes_need_not_be_there(top: Path, makes: bool) -> None:
    training = Training(cache_dir=str(top / "new" / "vae"), makes_cache=makes, cache_free=1)
    first, *others = check_cache(training)
    assert first.status == ("pass" if makes else "fail")
    assert first.observation.value == (
        f"absent, and root can make it in {top}" if makes else "absent"
    )
    assert {one.status for one in others} <= {"pass"} if makes else True
    assert [one.status for one in check_cache_files(training)] == ([] if makes else ["unknown"])


def test_the_variables_of_this_process_count(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WDS_CACHE", str(top))
    assert told(look(cache_dir=str(top)))["WDS_CACHE"] == "unknown"
    found = look(cache_dir=str(top), python=f"{top}/none")
    assert told(found)["WDS_CACHE"] == "unknown"
    site = top / "lib"
    monkeypatch.setattr(
        "mlhost_limits.training.cache_check.read_versions", lambda *_words: {"webdataset": "1"}
    )
    assert told(look(cache_dir=str(top), python=f"{site}/python"))["WDS_CACHE"] == "pass"
    assert "WDS_CACHE" not in told(look(cache_dir=str(top), place="session:root@sshd"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a disk")
@pytest.mark.parametrize(
    ("options", "fill", "code"),
    [
        ("size=64k", "cat /dev/zero", "folder-full"),
        ("size=64k", "head -c 16384 /dev/zero", ""),
        ("size=1m,nr_inodes=4", "touch 1 2 3 4; echo", "folder-no-inodes"),
    ],
    ids=["full", "nearly", "of inodes"],
)
def test_a_full_tmpfs_is_seen_without_a_stated_need(
    top: Path, options: str, fill: str, code: str
) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(top)]
    if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("nothing can be mounted")
    try:
        subprocess.run(["sh", "-c", f"{fill} > x"], cwd=top, stderr=subprocess.DEVNULL)
        found = look(cache_dir=str(top))
    finally:
        subprocess.run(["umount", str(top)], check=True)
    assert {cause.code for one in found for cause in one.causes} == ({code} if code else set())
    if not code:
        (told,) = (one for one in found if one.requirement.item == "free space")
        assert (told.status, told.observation.value) == ("pass", told.observation.value)
        assert 0 < int(told.observation.value or 0) <= 48 * 1024


def test_a_job_of_slurm_wants_a_directory_of_its_own(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    (top / "4711").mkdir()
    assert told(look(cache_dir=str(top)))["used by"] == "fail"
    assert told(look(cache_dir=f"{top}/4711"))["used by"] == "pass"


def test_a_path_of_a_container_is_not_looked_at_on_the_host(top: Path) -> None:
    found = look(cache_dir=str(top), place="container:docker/web")
    assert told(found) == {"directory": "unknown"}


@pytest.mark.parametrize(
    ("stated", "user"),
    [
        ({}, None),
        ({"user": "alice"}, "alice"),
        ({"place": "session:bob@sshd"}, "bob"),
        ({"place": "service:x.service"}, None),
    ],
)
def test_who_will_run_is_whom_the_policy_names(stated: dict[str, Any], user: str | None) -> None:
    assert find_user(Training(**stated)) == user


def test_a_service_that_runs_says_who_will(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(place="service:train.service")
    for owner, user in (("alice", "alice"), ("root", None), ("", None)):
        monkeypatch.setattr(cache_check, "read_unit_pids", lambda _unit: [7])
        monkeypatch.setattr(cache_check, "_find_owner", lambda _pid, _proc, owner=owner: owner)
        assert find_user(training) == user
    monkeypatch.setattr(cache_check, "read_unit_pids", lambda _unit: [])
    assert find_user(training) is None
    assert find_user(training._replace(user="bob")) == "bob"


def look_into(top: Path, **stated: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    training = Training(cache_dir=str(top), **stated)
    for one in check_cache_files(training):
        found.setdefault(one.status, []).append(one.observation.reason)
    return found


def test_damaged_files_fail_and_those_being_written_do_not(top: Path) -> None:
    assert not list(check_cache_files(Training()))
    (top / "whole.pt").write_bytes(make_pt())
    assert look_into(top) == {"pass": [""]}
    words = f"f=open('{top}/now.pt','wb'); f.write(b'PK'); f.flush(); print(1, flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", words], stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        process.stdout.readline()
        reason = f"1 file is being written now: now.pt by pid {process.pid}"
        assert look_into(top) == {"pass": [""], "unknown": [reason]}
        process.communicate(b"\n")
    assert look_into(top) == {"fail": [""]}


def test_a_cache_that_is_not_there_has_no_files(top: Path) -> None:
    assert look_into(top / "none") == {"unknown": [f"{top}/none does not exist"]}
    assert list(look_into(top, place="new-container:docker")) == ["unknown"]


MANY = int(os.environ.get("MLHOST_FILES", "60000"))
"""A million of them takes a minute."""


@pytest.fixture(scope="module")
def crowd() -> Iterator[Path]:
    """Make a cache of very many files; links to a few stand for most of them."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        for number in range(MANY):
            folder = Path(name, str(number % 100))
            if number < 100:
                folder.mkdir()
                (folder / "0.pt").write_bytes(make_pt())
            else:
                os.link(folder / "0.pt", folder / f"{number}.pt")
        yield Path(name)


CHECK = """
import sys
import tests.conftest
from mlhost_limits.cli import main
sys.exit(main(["preflight", "--profile", "simpletuner", "--only", "cache_integrity",
               "--cache-dir", sys.argv[1]]))
"""


@pytest.mark.slow
def test_ctrl_c_at_a_terminal_ends_a_long_look_at_once(crowd: Path) -> None:
    """It shows how far it has come until then, and says in one sentence what it has seen."""
    pid, terminal = pty.fork()
    if not pid:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # A job in the background ignores it.
        os.execv(sys.executable, [sys.executable, "-c", CHECK, str(crowd)])
    shown = b""
    while b"files" not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, b"\3")
    with contextlib.suppress(OSError):  # The terminal is gone with the program.
        while more := os.read(terminal, 1000):
            shown += more
    status = os.waitpid(pid, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 130
    lines = shown.decode().replace("\r", "\n").split("\n")
    assert re.search(r"[0-9]+ files, [0-9]+ per second; Ctrl-C", lines[1])
    said = [line for line in lines if line.startswith("\x1b[K")][-1]
    told = re.fullmatch(
        r"\x1b\[Kmlhost-limits: /dev/shm/\S+: interrupted after ([0-9]+) files; the others were not"
        r" looked at",
        said,
    )
    assert told
    assert int(told[1]) < MANY


def test_progress_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_progress("/c") is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(os, "get_terminal_size", lambda _handle: os.terminal_size((20, 5)))
    written: list[str] = []
    monkeypatch.setattr(sys.stderr, "write", written.append)
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2)
    tell = make_progress("/c")
    assert tell
    tell(1000)
    assert written == ["\r/c: 1000 files, 100\x1b[K"] or len(written[0]) <= 24
