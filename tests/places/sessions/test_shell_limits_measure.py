# SPDX-License-Identifier: GPL-3.0-or-later
"""A shell is started where its startup files set a limit, and tells what it makes of it."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from mlhost_limits.core.values import Declaration
from mlhost_limits.host.as_user import Errand
from mlhost_limits.host.children import Report
from mlhost_limits.host.look import find_processes, read_limits
from mlhost_limits.sessions import shell_clock_measure
from mlhost_limits.sessions import shell_limits_measure as shell_limits
from mlhost_limits.sessions.measure import SessionResult
from mlhost_limits.sessions.shell_clock_measure import NOT_ASKED, ShellClock
from mlhost_limits.sessions.shell_limits import ShellLine
from mlhost_limits.sessions.shell_limits_measure import measure_shells

USER = "root"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming a user needs root")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give root another home, and bash."""
    entry = list(pwd.getpwnam(USER))
    entry[5:7] = [str(tmp_path), "/bin/bash"]
    monkeypatch.setattr(pwd, "getpwnam", lambda _user: pwd.struct_passwd(entry))
    return tmp_path


@pytest.fixture
def alice(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a user without rights a home and bash."""
    home = Path(tempfile.mkdtemp())
    os.chown(home, 54321, 54321)
    entry = pwd.struct_passwd(["alice", "x", 54321, 54321, "", str(home), "/bin/bash"])
    monkeypatch.setattr(pwd, "getpwnam", lambda _user: entry)
    yield home
    shutil.rmtree(home)


def open_session(service: str = "sshd", user: str = USER) -> SessionResult:
    return SessionResult(service, user, read_limits("self"), "libpam session", opens=True)


def test_a_shell_that_sets_nothing_is_not_started(home: Path) -> None:
    (home / ".bashrc").write_text(f"touch {home}/started\nulimit -c 0\n")
    assert measure_shells([open_session()], ["nofile"]) == {}
    assert not (home / "started").exists()


@pytest.mark.parametrize(
    ("file", "service", "seen"),
    [
        (".bashrc", "sshd", 500),
        (".profile", "sshd", 500),
        (".profile", "login", 500),
        (".bashrc", "su", 500),
        (".profile", "su", 0),
        (".bashrc", "login", 0),
        (".bashrc", "cron", None),
    ],
)
def test_what_the_shell_makes_of_it(home: Path, file: str, service: str, seen: int | None) -> None:
    (home / file).write_text("echo hello\nsleep 61.5 &\n. ~/more\n")
    (home / "more").write_text("ulimit -Sn 500\n")
    session = open_session(service)
    found = measure_shells([session], ["nofile"])
    if seen is None:
        assert found == {}
        return
    result = found[service, USER]
    assert session.limits
    assert result.limits
    assert result.limits["nofile"].soft == (seen or session.limits["nofile"].soft)
    assert [line.at.place for line in result.lines] == [f"{home}/more:1"]
    assert "shell of root" in result.how
    assert has_ended("61.5")


def has_ended(word: str) -> bool:
    """Wait until no process has this argument; a signal takes its time."""
    for _attempt in range(100):
        if not any(word in read_arguments(process.pid) for process in find_processes()):
            return True
        time.sleep(0.02)
    return False


def read_arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


def test_a_shell_that_does_not_start_tells_nothing(home: Path) -> None:
    (home / ".bashrc").write_text("ulimit -n 500\nexit 3\n")
    result = measure_shells([open_session("su")], ["nofile"])["su", USER]
    assert result.limits is None
    assert result.reason == "the start files of root's shell give no session: it ended early"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ulimit -n 500; exit 3", "it ended early"),
        ("ulimit -n 500; kill -9 $$", "it ended early"),
        ("ulimit -n 500; echo mlhost-limits:; echo nonsense; exit", "it printed no limits"),
        ("ulimit -n 500; echo mlhost-limits:; seq 40; exit", "it printed no limits"),
    ],
)
def test_a_shell_of_a_user_that_tells_nothing_gives_no_session(
    alice: Path, text: str, problem: str
) -> None:
    (alice / ".bashrc").write_text(text)
    result = measure_shells([open_session("su", "alice")], ["nofile"])["su", "alice"]
    assert result.limits is None
    assert result.reason == f"the start files of alice's shell give no session: {problem}"


def test_what_a_shell_would_never_end_to_read_is_said_and_not_opened(alice: Path) -> None:
    os.mkfifo(alice / ".profile")
    result = measure_shells([open_session("sshd", "alice")], ["nofile"])["sshd", "alice"]
    reason = f"the start files of alice's shell give no session: {alice}/.profile is a FIFO"
    assert result == shell_limits.ShellResult(None, reason, ())


@pytest.mark.parametrize("target", ["/dev/null", "/nowhere", ".bashrc", "/etc"])
def test_a_start_file_that_ends_at_once_is_nothing_strange(alice: Path, target: str) -> None:
    (alice / ".bashrc").symlink_to(target)
    assert measure_shells([open_session("su", "alice")], ["nofile"]) == {}


def test_a_device_and_a_file_without_end_are_strange(alice: Path) -> None:
    (alice / ".bashrc").symlink_to("/dev/zero")
    session = open_session("su", "alice")
    assert "is a device" in measure_shells([session], ["nofile"])["su", "alice"].reason
    (alice / ".bashrc").unlink()
    with (alice / ".bashrc").open("wb") as file:
        file.truncate(2**40)
    assert "is larger than" in measure_shells([session], ["nofile"])["su", "alice"].reason


def test_what_all_share_is_measured_as_nobody(alice: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (alice / ".bashrc").write_text("ulimit -Sn 50\n")
    line = ShellLine("nofile", ("soft",), Declaration("/etc/profile", 1, "ulimit -n 70", 70))
    monkeypatch.setattr(shell_limits, "find_shared_lines", lambda *_: iter([line]))
    session = open_session("su", "alice")
    result = measure_shells([session], ["nofile"])["su", "alice"]
    assert result.limits
    assert result.limits["nofile"].soft == 50
    assert result.given
    assert session.limits
    assert result.given.limits == session.limits
    assert result.given.lines == (line,)
    assert result.given.how.endswith("then the interactive shell of nobody")


def test_a_folder_of_very_many_files_is_not_read_to_its_end(home: Path) -> None:
    (home / ".bashrc").write_text(". ~/d/*\n")
    (home / "d").mkdir()
    for number in range(600):
        (home / "d" / str(number)).write_text("")
    odd: list[str] = []
    found = list(shell_limits.find_lines([f"{home}/.bashrc"], str(home), ["nofile"], odd))
    assert found == [ShellLine("", (), Declaration(f"{home}/.bashrc", 1, ". ~/d/*", ""))]


def test_only_files_of_root_are_what_all_share() -> None:
    found = shell_limits.find_lines(
        ["/home/alice/x", "/etc/../home/alice/x", "/dev/zero"], "/", ["nofile"], [], ("/etc/",)
    )
    assert list(found) == []


@pytest.mark.parametrize(
    ("text", "seen", "place"),
    [
        ("for f in ~/*.rc; do . $f; done", 300, "a.rc:1"),
        ("D=$(echo ~); . $D/a.rc", 300, ".bashrc:1"),
        (". $NOWHERE/x 2>/dev/null", None, ".bashrc:1"),
        ("exec bash --norc -c exit", 0, ".bashrc:1"),
    ],
)
def test_what_a_file_has_the_shell_read_is_asked_of_the_shell(
    home: Path, text: str, seen: int | None, place: str
) -> None:
    """A name that no look follows is not a pass; what the shell becomes tells nothing."""
    (home / "a.rc").write_text("ulimit -n 300\n")
    (home / ".bashrc").write_text(f"{text}\n")
    session = open_session("su")
    result = measure_shells([session], ["nofile"])["su", USER]
    assert [line.at.place for line in result.lines] == [f"{home}/{place}"]
    if seen == 0:
        assert (result.limits, f"{home}/.bashrc:1" in result.reason) == (None, True)
        return
    assert result.limits
    assert session.limits
    assert result.limits["nofile"].soft == (seen or session.limits["nofile"].soft)


def test_what_scripts_read_first_is_seen_as_a_script_sees_it(home: Path) -> None:
    (home / ".profile").write_text("D=$HOME/lib\nBASH_ENV=$D/env; export BASH_ENV\n")
    (home / "lib").mkdir()
    (home / "lib" / "env").write_text("echo hello\nulimit -Sn 500\n")
    result = measure_shells([open_session("login")], ["nofile"])["login", USER]
    assert result.limits
    assert result.limits["nofile"].soft == 500
    assert [(one.at.path, one.at.line) for one in result.lines] == [(f"{home}/lib/env", 2)]
    (home / "lib" / "env").write_text("module() { :; }\n")
    assert measure_shells([open_session("login")], ["nofile"]) == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('command="ulimit -n 100; exec $SSH_ORIGINAL_COMMAND" ssh-ed25519 AAAA', True),
        (
            'no-pty,from="10.0.0.0/8,::1",command="prlimit -n=5 \\"$0\\"",no-X11-forwarding ssh-rsa A',
            True,
        ),
        ('command="{home}/script" ssh-rsa AAAA', True),
        ('command="/usr/bin/rsync --server" ssh-rsa AAAA', False),
        ('# command="ulimit -n 100" ssh-rsa AAAA', False),
        ("ssh-rsa AAAA the ulimit of alice", False),
    ],
)
def test_a_key_that_runs_a_command_in_the_place_of_the_shell(
    alice: Path, line: str, found: bool
) -> None:
    (alice / "script").write_text("#!/bin/sh\nulimit -n 7\n")
    (alice / "keys").write_text("\n" + line.replace("{home}", str(alice)) + "\n")
    sessions = [open_session("sshd", "alice"), open_session("su", "alice")]
    shells = measure_shells(sessions, ["nofile"], {"alice": ["%h/keys", "absent"]})
    forced = [one.forced for one in shells.values()]
    assert [[(at.path, at.line) for at in one] for one in forced] == (
        [[(f"{alice}/keys", 2)]] if found else []
    )


def test_what_other_users_left_no_time_for_is_not_asked(alice: Path) -> None:
    (alice / ".bashrc").write_text("ulimit -Sn 500\n")
    clock = ShellClock(0.0)
    result = measure_shells([open_session("su", "alice")], ["nofile"], clock=clock)["su", "alice"]
    assert (result.limits, result.reason, result.was_asked) == (None, NOT_ASKED, False)


def test_a_user_whose_shell_did_not_end_is_asked_no_more(
    alice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_clock_measure, "TIME_LIMIT", 0.5)
    (alice / ".bashrc").write_text("ulimit -Sn 500\nsleep 100\n")
    clock = ShellClock()
    first = measure_shells([open_session("su", "alice")], ["nofile"], clock=clock)["su", "alice"]
    again = measure_shells([open_session("su", "alice")], ["core"], clock=clock)["su", "alice"]
    assert re.search(r"no answer within 0\.\d+ s", first.reason)
    assert "no answer within the 10 s that a user has" in again.reason
    assert first.was_asked
    assert again.was_asked


def test_shells_are_started_at_once_and_asked_once(
    alice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class Counted(ShellClock):  # type: ignore[misc]
        def ask(self, errands: Sequence[Errand]) -> list[Report | None]:
            asked.append(len(errands))
            reports: list[Report | None] = super().ask(errands)
            return reports

    (alice / ".profile").write_text("ulimit -Sn 500\n")
    sessions = [open_session(way, "alice") for way in ("sshd", "login", "su-l", "su")]
    clock = Counted()
    found = measure_shells(sessions, ["nofile"], clock=clock)
    assert len(found) == 4
    assert asked == [1, 5]  # Her files once; then both shells of sshd, and one of each other.
    assert measure_shells(sessions[:1], ["nofile"], clock=clock)["sshd", "alice"]
    assert asked == [1, 5, 0, 0]


def test_roots_own_shell_takes_none_of_the_time(home: Path) -> None:
    (home / ".bashrc").write_text("ulimit -Sn 500\n")
    found = measure_shells([open_session("su")], ["nofile"], clock=ShellClock(0.0))["su", USER]
    assert found.limits
    assert found.limits["nofile"].soft == 500
