# SPDX-License-Identifier: GPL-3.0-or-later
"""What a unit starts may set limits after systemd: commands, scripts, and what shells read."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import Rlimit
from mlhost_limits.host.owned import ask_owner
from mlhost_limits.processes import starters_read
from mlhost_limits.processes.causes import Verdict, blame_starter
from mlhost_limits.processes.starters_read import doubt_start, find_starters, list_starters
from mlhost_limits.sessions.shell_limits import find_shell_limits
from mlhost_limits.systemd.unit_file import Setting

from tests.worlds.unit_world import UNIT, D, service, unit


def exec_start(value: str, key: str = "ExecStart", section: str = "Service") -> Setting:
    return Setting(section, key, value, "/etc/systemd/system/x.service", 4)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("/bin/sh -c 'ulimit -n 1024; exec x'", [("nofile", 1024)]),
        ('/bin/sh -c "ulimit -l 64 && exec x"', [("memlock", 65536)]),
        (
            "/usr/bin/prlimit --nofile=1024:2048 --nproc=5 x",
            [("nofile", 1024), ("nofile", 2048), ("nproc", 5)],
        ),
        ("/usr/bin/x --nofile=5", []),
        ("/usr/bin/x 'unclosed", []),
    ],
)
def test_a_command_line_may_set_limits(value: str, found: list[tuple[str, int]]) -> None:
    lines = list(find_starters([exec_start(value)]))
    assert [(line.item, line.at.value) for line in lines] == found
    assert all(line.at.text == f"ExecStart={value}" and line.at.line == 4 for line in lines)


@pytest.mark.parametrize(
    "command",
    [
        "prlimit " * 60_000,
        "prlimit --a " * 60_000,
        f"/usr/bin/prlimit --nofile={'9' * 9000} /bin/x",
        f"/usr/bin/prlimit --nofile={'9' * 400_000} /bin/x",
    ],
)
def test_a_command_line_of_a_user_is_read_in_the_time_of_its_length(command: str) -> None:
    begun = time.process_time()
    assert list(find_starters([exec_start(command)])) == []
    assert time.process_time() - begun < 3


def test_what_prlimit_starts_has_options_of_its_own() -> None:
    line = "/usr/bin/prlimit --nofile=5:6 -n 7 --memlock=8 /srv/run --data=9 --nproc=10"
    found = [(one.item, one.at.value) for one in find_starters([exec_start(line)])]
    assert found == [("nofile", 5), ("nofile", 6), ("memlock", 8)]


def test_a_script_and_what_it_reads_may_set_limits(tmp_path: Path) -> None:
    script = tmp_path / "start"
    script.write_text("#!/bin/sh\n. /etc/default/no-such-file\nulimit -n 9\nexec x\n")
    (line,) = find_starters([exec_start(f"-/bin/sh {script}")])
    assert (line.item, line.at.path, line.at.line) == ("nofile", str(script), 3)


def test_other_lines_start_nothing() -> None:
    stop = exec_start("/bin/sh -c 'ulimit -n 5'", "ExecStop")
    other = exec_start("/bin/sh -c 'ulimit -n 5'", section="X")
    assert list(find_starters([stop, other])) == []


def test_a_script_s_settings_are_found_by_its_name(tmp_path: Path) -> None:
    script = tmp_path / "trainer"
    text = (
        "#!/bin/sh\nNAME=trainer\n[ -r /etc/default/$NAME ] && . /etc/default/$NAME\n. /srv/env\n"
    )
    script.write_text(text)
    told = starters_read._list_read(text, str(script))
    assert told == ["/etc/default/trainer", "/srv/env"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("/usr/bin/prlimit -n1024 /usr/bin/x -u5", [("nofile", 1024)]),
        ("/usr/bin/prlimit --nofile=1024: x", [("nofile", 1024)]),
        ("/usr/bin/prlimit -n=$FILES x", [("nofile", "$FILES")]),
        ("/usr/bin/softlimit -o 1024 -p9 x -o 5", [("nofile", 1024), ("nproc", 9)]),
        ("/usr/bin/chpst -o 1024 x", [("nofile", 1024)]),
        ("/bin/sh -c 'prlimit --nofile=7 x --nofile=8'", [("nofile", 7)]),
    ],
)
def test_programs_that_start_another_one(value: str, found: list[tuple[str, object]]) -> None:
    assert [(one.item, one.at.value) for one in find_starters([exec_start(value)])] == found


def test_what_is_set_once_it_runs() -> None:
    post = exec_start("/usr/bin/prlimit --pid $MAINPID --nofile=5", "ExecStartPost")
    assert [one.at.value for one in find_starters([post])] == [5]
    other = exec_start("/bin/sh -c 'ulimit -n 5'", "ExecStartPost")
    assert list(find_starters([other])) == []


@pytest.mark.parametrize(
    ("value", "is_login"),
    [
        ("/bin/bash -lc 'exec x'", True),
        ("-/usr/bin/bash -e --login -c x", True),
        ("bash -c -l", True),
        ("/bin/bash -c 'ls -l'", False),
        ("/bin/bash /srv/run --login", False),
        ("/usr/bin/flash -l x", False),
    ],
)
def test_a_login_shell_reads_the_files_of_all_users(
    value: str, is_login: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = list(find_shell_limits("ulimit -n 9", "/etc/profile.d/x.sh"))
    monkeypatch.setattr(starters_read, "find_shared_lines", lambda *_args: lines)
    assert list(find_starters([exec_start(value)])) == lines * is_login


def test_what_scripts_of_bash_read_first(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("ulimit -n 9\n")
    line = exec_start(f'"BASH_ENV={first}" A=b', "Environment")
    assert [one.at.path for one in find_starters([line])] == [str(first)]


GOOD = Rlimit(65536, 131072)
LIMIT = Limit(65536, 131072)


@pytest.mark.parametrize(
    ("line", "since", "known"),
    [
        ("ExecStart=/usr/bin/x", 0.0, True),
        ("ExecStart=/bin/sh -c 'ulimit -n 1024; exec x'", 0.0, False),
        ("ExecStart=/bin/sh -c 'ulimit -n 1024; exec x'", 1e12, False),
        ("ExecStart=/bin/sh -c 'ulimit -Hn 65536; exec x'", 0.0, False),
        ("ExecStart=/bin/sh -c 'ulimit -Sn 65536; exec x'", 0.0, True),
        ("ExecStart=/bin/sh -c 'ulimit -u 10; exec x'", 0.0, True),
        ("ExecStart=/bin/sh -c 'ulimit -n $MOST; exec x'", 0.0, False),
        ("ExecStart=/bin/sh -c 'ulimit -n $MOST; exec x'", 1e12, True),
        ("ExecStart=/bin/sh -c 'ulimit $ALL; exec x'", 0.0, False),
        ("ExecStart=/bin/sh -c 'ulimit $1 $2; exec x'", 0.0, False),
        ("ExecStart=/bin/sh -c 'ulimit -S $X 100; exec x'", 0.0, False),
        ("ExecStart=/usr/bin/prlimit --nofile=1048576 $PROGRAM", 0.0, True),
    ],
)
def test_no_start_is_foretold_that_a_line_may_spoil(
    line: str, since: float, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starters_read, "read_change", lambda _path: 10.0)
    facts = unit({UNIT: service("LimitNOFILE=65536:131072"), f"{D}/z.conf": service(line)})
    verdict = Verdict((), GOOD, GOOD)
    told = doubt_start("nofile", LIMIT, verdict, list_starters(facts), since, facts)
    if known:
        assert told == verdict
    else:
        assert (told.next_start, told.at_boot) == (None, None)
        (doubt,) = told.doubts
        assert (doubt.code, doubt.at and doubt.at.path) == ("unit-start-sets-limit", f"{D}/z.conf")
        assert "may set the limit after systemd has" in doubt.text


def test_a_start_that_fails_is_not_doubted() -> None:
    facts = unit({UNIT: service("ExecStart=/bin/sh -c 'ulimit -n 5; x'")})
    verdict = Verdict((), Rlimit(5, 5), None)
    assert doubt_start("nofile", LIMIT, verdict, list_starters(facts), 0.0, facts) == verdict


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming a user needs root")
class TestOfAUser:
    """A script that belongs to a user is read, and followed, by that user alone."""

    @pytest.fixture
    def home(self) -> Iterator[Path]:
        home = Path(tempfile.mkdtemp(dir="/tmp"))
        os.chown(home, 54321, 54321)
        home.chmod(0o755)
        yield home
        shutil.rmtree(home)

    def find(self, home: Path, text: str, uid: int | None = None) -> list[tuple[str, int, object]]:
        script = home / "run.sh"
        script.write_text(f"#!/bin/sh\n{text}\n")
        os.chown(script, 54321, 54321)
        found = find_starters([exec_start(str(script))], uid)
        return [(one.at.path.rpartition("/")[2], one.at.line, one.at.value) for one in found]

    @pytest.mark.parametrize("uid", [None, 54321])
    def test_it_is_told_by_its_owner(self, home: Path, uid: int | None) -> None:
        assert self.find(home, "ulimit -n 9", uid) == [("run.sh", 2, 9)]

    def test_what_it_reads_of_others_is_not_shown(self, home: Path) -> None:
        secret, shared = home / "secret", home / "shared"
        secret.write_text("ulimit -n $(login --password hunter2)\n")
        secret.chmod(0o600)
        shared.write_text("ulimit -n 7 # of root\n")
        assert self.find(home, f". {secret}\n. {shared}") == [("run.sh", 0, 7)]

    @pytest.mark.parametrize(
        "text",
        [
            "A=" + "x" * 100_000 + "\n/etc/default/" + "$A" * 100_000,
            "\n".join(f". /usr/{'./' * number}bin//bash" for number in range(3000)),
            "ulimit " + "1 " * 4_000_000,
            "A=/x\n" * 300 + ". " + "$A" * 100_000,
        ],
        ids=["name", "spellings", "values", "words"],
    )
    def test_no_text_of_the_user_takes_much(self, home: Path, text: str) -> None:
        begun = time.process_time()
        assert len(self.find(home, text)) <= 50
        assert time.process_time() - begun < 1

    def test_what_is_not_told_in_time_may_set_any_limit(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(starters_read, "ask_owner", partial(ask_owner, seconds=0.3))
        monkeypatch.setattr(starters_read, "_look", lambda _scripts: time.sleep(60))
        assert self.find(home, "true") == [("run.sh", 0, "")]
        facts = unit({UNIT: service(f"ExecStart={home}/run.sh")})
        told = doubt_start("nofile", LIMIT, Verdict((), GOOD), list_starters(facts), 0.0, facts)
        (doubt,) = told.doubts
        assert f"{home}/run.sh" in doubt.text

    @pytest.mark.parametrize("text", ["ulimit -n 1048576\n" * 60, "#\n" * 2**17 + "ulimit -n 64"])
    def test_what_is_not_read_to_its_end_may_set_any_limit(self, home: Path, text: str) -> None:
        assert self.find(home, text)[-1] == ("run.sh", 0, "")

    def test_no_command_is_offered_for_another_file(self, home: Path) -> None:
        (home / "shared").write_text("ulimit -n 7\n")
        (home / "run.sh").write_text(f"#!/bin/sh\n. {home}/shared\n")
        os.chown(home / "run.sh", 54321, 54321)
        [line] = find_starters([exec_start(f"{home}/run.sh")])
        facts = unit({UNIT: service("ExecStart=x")})
        assert blame_starter(line.at, facts).remedy.commands == ()
