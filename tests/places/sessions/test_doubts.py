# SPDX-License-Identifier: GPL-3.0-or-later
"""What a quiet look leaves out is not a pass: PAM's modules, sshd's commands, sudo's own limits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN, Observation, Requirement, judge
from mlhost_limits.core.values import Declaration, User
from mlhost_limits.sessions import doubts_read, user_records_read
from mlhost_limits.sessions.base_read import put_options_first
from mlhost_limits.sessions.doubts import doubt_findings, doubt_sudo
from mlhost_limits.sessions.first_scripts import find_cron_settings, find_variables
from mlhost_limits.sessions.host_read import SessionsRead
from mlhost_limits.sessions.shell_sources import find_sources
from mlhost_limits.sessions.sudoers import find_main_file, find_sudo_includes, find_sudo_settings

ALICE = User("alice", 1000, 1000, frozenset({"alice", "ml"}))
LIMITS = "session required pam_limits.so\n"
Found = list[tuple[str, int, str]]


def find(
    service: str, mode: str = "quiet", *, pam: str = LIMITS, sshd: str = "", sudo: str = ""
) -> Found:
    files = SessionsRead()
    files.__dict__.update(
        pam_files={f"/etc/pam.d/{service}": pam},
        sshd_config=("/etc/ssh/sshd_config", {"/etc/ssh/sshd_config": sshd}),
        sudo_settings=find_sudo_settings({"/etc/sudoers": sudo}),
    )
    doubts = doubts_read.find_doubts(service, ALICE, files, mode)
    places = [(one, one.cause.at) for one in doubts]
    return [(at.path, at.line, one.item) for one, at in places if at]


PAM, SSHD, SUDO = "/etc/pam.d/sshd", "/etc/ssh/sshd_config", "/etc/sudoers"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("session optional pam_exec.so /bin/true", []),
        ("session optional pam_exec.so /opt/prlimit --nofile=1:1", [(PAM, 2, "")]),
        ("account required pam_exec.so sh -c 'ulimit -n 5'", [(PAM, 2, "")]),
        ("session optional pam_motd.so", []),
        ("session optional pam_nothing_of_this_name.so", []),
        ("auth optional pam_exec.so /bin/true", []),
    ],
)
def test_a_module_that_is_not_run_and_may_set_limits(line: str, found: Found) -> None:
    assert find("sshd", pam=f"{LIMITS}{line}\n") == found
    assert find("sshd", "full", pam=f"{LIMITS}{line}\n") == []


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"\x7fELF\0pam_sm_open_session\0setrlimit\0", [(PAM, 2, "")]),
        (b"\x7fELF\0pam_sm_open_session\0execve\0", [(PAM, 2, "")]),
        (b"\x7fELF\0pam_sm_open_session\0system\0", [(PAM, 2, "")]),
        (b"\x7fELF\0pam_sm_open_session\0of_systems\0", []),
        (b"", []),
    ],
)
def test_a_module_tells_by_what_it_links_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, found: Found
) -> None:
    (tmp_path / "pam_own.so").write_bytes(content)
    monkeypatch.setattr(
        doubts_read, "find_module", lambda name: str(tmp_path / name) if "own" in name else None
    )
    assert find("sshd", pam=f"{LIMITS}session optional pam_own.so\n") == found


def test_a_program_of_the_stack_of_auth_is_run_by_no_look() -> None:
    pam = f"{LIMITS}auth optional pam_exec.so prlimit\n"
    found = [("/etc/pam.d/su", 2, "")]
    assert find("su", pam=pam) == find("su", "full", pam=pam) == found


@pytest.mark.parametrize(
    ("content", "may"),
    [
        ("#!/bin/sh\nulimit -n 5\n", True),
        ("#!/bin/sh\n# ulimit -n 5\nlogger x\n", False),
        ("#!/bin/sh\n# \\\nuli\\\nmit -n 5\n", True),
        ("#!/bin/sh\nx='a # b'; ulimit -n 5\n", True),
        ("#!/usr/bin/python3\nimport resource\nresource.setrlimit(7, (1, 1))\n", True),
        ("#!/bin/sh\nexec {0}/deeper\n", True),
        ("#!/bin/sh\nexec {0}/itself\n", False),
        ("#!/bin/sh\nD={0}\n. $D/deeper\n", True),
        ("#!/bin/sh\nfor f in {0}/i*; do . $f; done\n", False),
        ("#!/bin/sh\n. $SITE/x\n", True),
        ("nothing: ulimit", True),
        ("\0 ulimit", False),
        ("import x", False),
    ],
)
def test_a_program_is_read_for_what_sets_limits(
    tmp_path: Path, content: str, may: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: str, _root: str = "/") -> bytes | None:
        file = Path(path)
        return file.read_bytes() if file.exists() else None

    monkeypatch.setattr(doubts_read, "read_bytes", read)
    (tmp_path / "deeper").write_text("#!/bin/sh\nprlimit --pid $PPID --nofile=5\n")
    (tmp_path / "itself").write_text("#!/bin/sh\necho done\n")
    (tmp_path / "program").write_text(content.format(tmp_path))
    assert doubts_read.may_set_limits(f"{tmp_path}/program --option") is may


def test_what_cannot_be_read_may_set_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str, _root: str) -> bytes:
        raise PermissionError

    monkeypatch.setattr(doubts_read, "read_bytes", refuse)
    assert doubts_read.may_set_limits("/home/alice/gate")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("PAMServiceName sshd\n", []),
        ("PAMServiceName gate\n", [(SSHD, 1, "")]),
        ('Match User alice\npamservicename "gate"\n', [(SSHD, 2, "")]),
        ("Match User bob\nPAMServiceName gate\n", []),
        ("PAMServiceName sshd\nMatch User alice\nPAMServiceName gate\n", [(SSHD, 3, "")]),
        ("PAMServiceName gate\nMatch User alice\nPAMServiceName sshd\n", []),
    ],
)
def test_another_service_of_pam_than_sshd_s_own(text: str, found: Found) -> None:
    assert find("sshd", sshd=text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Defaults pam_service=sudo, pam_login_service=sudo-i\n", []),
        ("Defaults pam_service=gate\n", [(SUDO, 1, "")]),
        ("Defaults:bob pam_login_service = gate\n", [(SUDO, 1, "")]),
        ("Defaults pam_service=gate\nDefaults pam_service=sudo\n", []),
    ],
)
def test_another_service_of_pam_than_sudo_s_own(text: str, found: Found) -> None:
    assert find("sudo", sudo=text) == found


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("/etc/userdb/alice.user", '{"resourceLimits":{}}', [("/etc/userdb/alice.user", 0, "")]),
        ("/etc/userdb/alice.user", '{"userName":"alice"}', []),
        ("/etc/userdb/bob.user", '{"resourceLimits":{}}', []),
    ],
)
def test_the_record_of_a_user_may_hold_limits(
    path: str, text: str, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {path: text.encode()}
    monkeypatch.setattr(user_records_read, "read_bytes", lambda one, _root: texts.get(one))
    pam = f"{LIMITS}session optional pam_systemd.so\n"
    assert find("login", pam=pam) == found
    assert find("login", "full", pam=pam) == find("login") == []


def test_sudo_may_be_given_another_file() -> None:
    plain = "Plugin sudoers_policy sudoers.so\n"
    assert find_main_file("") == find_main_file(plain) == SUDO
    assert find_main_file(f"# {plain}{plain.strip()} sudoers_mode=0400 sudoers_file=/x\n") == "/x"


FORCED = "ForceCommand ulimit -n 100; $SHELL\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (FORCED, [(SSHD, 1, "")]),
        ("ForceCommand internal-sftp\n", []),
        (f"ForceCommand none\n{FORCED}", []),
        (f"ForceCommand none\nMatch User alice\n{FORCED}", [(SSHD, 3, "")]),
        (f"{FORCED}Match User alice\nForceCommand none\n", []),
        (f"{FORCED}Match LocalPort 22\nForceCommand none\n", [(SSHD, 1, "")]),
        ("ForceCommand /bin/true\n", []),
        (f"Match User alice\n{FORCED}", [(SSHD, 2, "")]),
        (f"Match User bob,carol\n{FORCED}", []),
        (f"Match User *,!alice\n{FORCED}", []),
        (f"Match Group ml Address 10.0.0.0/8\n{FORCED}", [(SSHD, 2, "")]),
        (f"Match Group wheel\n{FORCED}Match all\n{FORCED}", [(SSHD, 4, "")]),
        (f"Match Address 10.0.0.0/8\nForceCommand none\nMatch all\n{FORCED}", [(SSHD, 4, "")]),
        (f"Match LocalPort 22\n{FORCED}Match User alice\n{FORCED}", [(SSHD, 2, ""), (SSHD, 4, "")]),
        (f"Match User alice\nForceCommand /bin/true\nMatch all\n{FORCED}", []),
        (f"Match Invalid-User\n{FORCED}", []),
        (f"Match final User alice\n{FORCED}", [(SSHD, 2, "")]),
        ("ForceCommand limit-wrapper\n", [(SSHD, 1, "")]),
        ("ForceCommand exec $HOME/wrap\n", [(SSHD, 1, "")]),
        ("ForceCommand internal-sftp -l INFO\n", []),
        ("UsePAM yes\n", []),
    ],
)
def test_a_command_of_sshd_that_may_set_limits(text: str, found: Found) -> None:
    assert find("sshd", sshd=text) == found
    assert find("su", sshd=text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('Defaults rlimit_nofile="1024,2048"\n', [(SUDO, 1, "nofile")]),
        ("Defaults env_reset, rlimit_memlock=64, \\\n !pam_session\n", [(SUDO, 1, "memlock"), (SUDO, 1, "")]),
        ("Defaults rlimit_nofile=5\nDefaults rlimit_nofile=default\n", []),
        ("Defaults rlimit_nofile=default\nDefaults:alice rlimit_nofile=5\n", [(SUDO, 2, "nofile")]),
        ("Defaults !pam_session\nDefaults pam_session\n", []),
        ("# Defaults rlimit_nofile=5\n", []),
        ("Defaults:#1000 rlimit_nofile=5\n", [(SUDO, 1, "nofile")]),
        ('Defaults badpass_message="no # here", rlimit_nofile=5 # so\n', [(SUDO, 1, "nofile")]),
        ("Defaults!/bin/ls rlimit_nofile = user\n", [(SUDO, 1, "nofile")]),
        ("Defaults>alice,bob rlimit_nofile=5\n", [(SUDO, 1, "nofile")]),
        ("Defaults>bob rlimit_nofile=5\n", []),
        ("Defaults>ALL rlimit_nofile=5\n", [(SUDO, 1, "nofile")]),
        ("Defaults>TEAM rlimit_nofile=5\n", [(SUDO, 1, "nofile")]),
        ("Defaults>%ml !pam_session\n", [(SUDO, 1, "")]),
        ("alice ALL=(ALL) ALL\n", []),
    ],
)  # fmt: skip
def test_what_sudo_does_to_limits(text: str, found: Found) -> None:
    assert find("sudo", sudo=text) == found
    assert find("sshd", sudo=text) == []


def test_what_an_include_states_may_count_before_the_rest() -> None:
    files = {
        SUDO: "@include /a\nDefaults rlimit_nofile=100",
        "/a": "Defaults rlimit_nofile=default",
    }
    assert [one.at.path for one in find_sudo_settings(files)] == [SUDO]


def test_what_sudoers_includes() -> None:
    text = '@includedir /etc/sudoers.d\n#include "/etc/a b"\n#included /x\n@include local\n'
    assert find_sudo_includes(text) == [
        ("includedir", "/etc/sudoers.d"), ("include", "/etc/a b"), ("include", "local"),
    ]  # fmt: skip


def test_only_what_passes_is_doubted_and_only_for_its_item() -> None:
    (setting,) = find_sudo_settings({SUDO: "Defaults rlimit_nofile=5"})
    doubts = [doubt_sudo(setting.at, setting.item)]

    def state(item: str, value: int) -> str:
        wanted = Requirement("session:alice@sudo", item, "soft", 100)
        (found,) = doubt_findings([judge(wanted, Observation(value, "here"))], doubts)
        assert (found.observation.value is None) is (found.status == UNKNOWN)
        return str(found.status)

    assert [state("nofile", 200), state("nofile", 50), state("memlock", 200)] == [
        UNKNOWN,
        FAIL,
        PASS,
    ]


@pytest.mark.parametrize("gap", [" ", "!", "! ", "a,", '"'])
def test_a_line_of_sudoers_is_read_in_the_time_of_its_length(gap: str) -> None:
    begun = time.process_time()
    find_sudo_settings({SUDO: f"Defaults rlimit_nofile={gap * 60_000}x"})
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    ("value", "states"),
    [
        ("50", [UNKNOWN, UNKNOWN]),
        ('"100,200"', [PASS, PASS]),
        ('"50, 200"', [UNKNOWN, PASS]),
        ("infinity", [PASS, PASS]),
        ("user", [UNKNOWN, UNKNOWN]),
        ('"1,2,3"', [UNKNOWN, UNKNOWN]),
    ],
)
def test_what_sudo_sets_is_no_doubt_where_it_is_enough(value: str, states: list[str]) -> None:
    (setting,) = find_sudo_settings({SUDO: f"Defaults rlimit_nofile={value}"})
    doubts = [doubt_sudo(setting.at, setting.item, setting.limit)]
    wanted = [Requirement("session:alice@sudo", "nofile", kind, 100) for kind in ("soft", "hard")]
    found = doubt_findings([judge(one, Observation(300, "")) for one in wanted], doubts)
    assert [one.status for one in found] == states


@pytest.mark.parametrize("gap", [" ", '"', "' ", "/a", "$", "${", "a="])
def test_lines_that_name_scripts_are_read_in_the_time_of_their_length(gap: str) -> None:
    begun = time.process_time()
    for start in ("BASH_ENV=a", "BASH_ENV DEFAULT=a", "SHELL=", ". a", "for i in ", "A=/b"):
        text = f"{start}{gap * 60_000}b"
        list(find_variables(text, SUDO))
        list(find_cron_settings(text, SUDO))
        find_sources(text, SUDO, "/root")
    assert time.process_time() - begun < 3


ENVIRONMENT, CRONTAB = "/etc/environment", "/etc/crontab"
READS = "session required pam_env.so\n"
LOW, CALM = "/etc/low.sh", "/etc/calm.sh"


@pytest.mark.parametrize(
    ("service", "files", "found"),
    [
        ("sshd", {ENVIRONMENT: f"BASH_ENV={LOW}"}, [ENVIRONMENT]),
        ("su", {ENVIRONMENT: f'export ENV="{LOW}"'}, [ENVIRONMENT]),
        ("sshd", {ENVIRONMENT: f"BASH_ENV={CALM}\nPATH={LOW}\n#BASH_ENV={LOW}"}, []),
        ("sshd", {ENVIRONMENT: "BASH_ENV=$HOME/x"}, [ENVIRONMENT]),
        ("sshd", {"/etc/security/pam_env.conf": f"BASH_ENV DEFAULT={LOW}"}, ["/etc/security/pam_env.conf"]),
        ("sshd", {"/etc/security/pam_env.conf": f"BASH_ENV \\\nDEFAULT={LOW}"}, ["/etc/security/pam_env.conf"]),
        ("sshd", {ENVIRONMENT: f"A=b\\\nBASH_ENV={LOW}"}, [ENVIRONMENT]),
        ("cron", {CRONTAB: f"SHELL={LOW}\n* * * * * root ulimit -n 5"}, [CRONTAB]),
        ("cron", {CRONTAB: f"SHELL={CALM}\nMAILTO={LOW}"}, []),
        ("sshd", {CRONTAB: f"SHELL={LOW}"}, []),
        ("sshd", {"/etc/ssh/sshrc": "prlimit --nofile=5 --pid $PPID"}, ["/etc/ssh/sshrc"]),
        ("sshd", {"/etc/ssh/sshrc": "ulimit -n 5 # no prlimit\n# prlimit"}, []),
        ("sshd", {SSHD: f"SetEnv A=b BASH_ENV={LOW}"}, [SSHD]),
        ("sshd", {SSHD: f"Match User bob\nSetEnv BASH_ENV={LOW}"}, []),
        ("sshd", {SSHD: f'SetEnv "ENV={CALM}" TZ=UTC'}, []),
    ],
)  # fmt: skip
def test_what_a_session_runs_or_reads_first(
    service: str, files: dict[str, str], found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {LOW: "ulimit -n 5", CALM: "umask 22", **files}
    monkeypatch.setattr(doubts_read, "read_text", lambda path, _root="/": texts.get(path))
    monkeypatch.setattr(
        doubts_read, "read_bytes", lambda path, _root="/": texts.get(path, "").encode()
    )
    monkeypatch.setattr(doubts_read, "list_folder", lambda _path, _root: [])
    monkeypatch.setattr(
        doubts_read,
        "read_each",
        lambda paths, _root: [(one, texts[one]) for one in paths if one in texts],
    )
    told = find(service, pam=f"{LIMITS}{READS}", sshd=files.get(SSHD, ""))
    assert [path for path, _line, _item in told] == found
    if ENVIRONMENT in files:
        assert find(service, pam=f"{LIMITS}{READS.strip()} readenv=0\n") == []
        assert find(service) == []


@pytest.mark.parametrize(
    ("options", "text", "found"),
    [
        ("-D", "", []),
        ("-D -o UsePAM=yes -4", "", []),
        ("-o PAMServiceName=sshd -D", "", []),
        ("-o PAMServiceName=gate -D", "", ["options:1"]),
        ("-D -oForceCommand=ulimit -n 5; $SHELL", "", ["options:1"]),
        ("-D -o UsePAM=yes -o ForceCommand=ulimit -n 5", "", ["options:2"]),
        ("-o ForceCommand=/bin/true", FORCED, []),
        ("-o UsePAM=yes", FORCED, [f"{SSHD}:1"]),
    ],
)
def test_what_the_command_line_of_sshd_states_comes_first(
    options: str, text: str, found: list[str]
) -> None:
    command = f"sshd: /usr/sbin/sshd {options} [listener] 0 of 10-100 startups"
    files = SessionsRead()
    at = Declaration("options", 0, command, "")
    config = put_options_first(at, SSHD, {SSHD: text})
    files.__dict__.update(pam_files={PAM: LIMITS}, sshd_config=config)
    doubts = doubts_read.find_doubts("sshd", ALICE, files, "quiet")
    assert [one.cause.at.place for one in doubts if one.cause.at] == found


def test_of_a_tree_its_own_scripts_are_read(tmp_path: Path) -> None:
    (tmp_path / "opt" / "parts").mkdir(parents=True)
    (tmp_path / "opt" / "gate").write_text("#!/bin/sh\nfor f in /opt/parts/*; do . $f; done\n")
    assert not doubts_read.may_set_limits("/opt/gate", str(tmp_path))
    (tmp_path / "opt" / "parts" / "low").write_text("ulimit -n 5\n")
    assert doubts_read.may_set_limits("/opt/gate", str(tmp_path))
    assert not doubts_read.may_set_limits("/opt/gate")
