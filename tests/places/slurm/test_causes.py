# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever gives a job of Slurm less is named by its line, and a remedy gives it what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.core.cause import Cause
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import RLIMITS, UNLIMITED, Declaration, Rlimit, User
from mlhost_limits.sessions.facts import SessionFacts
from mlhost_limits.sessions.model import Start
from mlhost_limits.sessions.pam_limits import read_lines
from mlhost_limits.slurm.causes import (
    ConfFacts,
    blame_age,
    blame_hand,
    blame_other_host,
    blame_propagation,
    find_effective,
    find_job_causes,
    find_remedy,
    is_slurmd_short,
    need_of_slurmd,
)
from mlhost_limits.slurm.model import JobFacts, JobPam, predict_job
from mlhost_limits.slurm.slurm_conf import parse_slurm_conf, read_propagation

from tests.worlds.pasted import paste

C = "/etc/slurm/slurm.conf"
KEPT_BACK = ("memlock", "nofile")
NO_LIMIT = Rlimit(UNLIMITED, UNLIMITED)
SLURMD = {
    **dict.fromkeys(RLIMITS, NO_LIMIT),
    "nofile": Rlimit(1024, 131072),
    "stack": Rlimit(8, 100),
}
LOGIN = {
    **dict.fromkeys(RLIMITS, NO_LIMIT),
    "nofile": Rlimit(1024, 524288),
    "memlock": Rlimit(65536, 65536),
    "stack": Rlimit(4, 200),
}
MEMLOCK = Requirement("job:slurm", "memlock", "soft", UNLIMITED, unit="bytes")
NOFILE = Requirement("job:slurm", "nofile", "soft", 65536)
HARD = Requirement("job:slurm", "nofile", "hard", 131072)
WHO = "session:alice@sshd"


def conf(text: str, path: str = C, served: bool = False) -> ConfFacts:
    return ConfFacts(path, text, parse_slurm_conf({path: text}, path), KEPT_BACK, served)


def job(text: str, pam: JobPam | None = None) -> JobFacts:
    propagation = read_propagation(parse_slurm_conf({C: text}, C))
    return JobFacts(SLURMD, LOGIN, WHO, propagation, pam)


def blame(text: str, wanted: Requirement = MEMLOCK, pam: JobPam | None = None) -> list[Cause]:
    facts = job(text, pam)
    return list(find_job_causes(wanted, predict_job(wanted.item, facts), facts, conf(text)))


def test_what_a_job_has() -> None:
    facts = job("PropagateResourceLimits=MEMLOCK,STACK\n")
    assert predict_job("memlock", facts) == Rlimit(65536, UNLIMITED)
    assert predict_job("nofile", facts) == Rlimit(131072, 131072)  # slurmd raised its own.
    assert predict_job("stack", facts) == Rlimit(4, 100)
    assert predict_job("nofile", facts, True) == Rlimit(1024, 131072)


def test_which_of_the_two_decided() -> None:
    facts = job("")
    assert find_effective("memlock", Rlimit(65536, UNLIMITED), facts) is True
    assert find_effective("memlock", NO_LIMIT, facts) is False
    assert find_effective("memlock", Rlimit(1, 1), facts) is None
    assert find_effective("core", NO_LIMIT, facts) is True
    assert find_effective("core", NO_LIMIT, job("PropagateResourceLimits=NONE\n")) is False


FAULTS = {
    "no line": ("A=1\n", "slurm-login-decides", 0, "no line of /etc/slurm/slurm.conf says otherwise"),
    "all": ("A=1\nPropagateResourceLimits=ALL\n", "slurm-propagates", 2, 'slurm.conf:2 "PropagateResourceLimits=ALL" says so'),
    "a list": ("PropagateResourceLimits=MEMLOCK\n", "slurm-propagates", 1, "says so"),
    "continued": ("PropagateResourceLimits=\\\nALL\n", "slurm-propagates", 1, "says so"),
    "except": ("PropagateResourceLimitsExcept=CORE\n", "slurm-except-lacks", 1, "leaves the limit out"),
    "no end of line": ("PropagateResourceLimits=ALL", "slurm-propagates", 1, "says so"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line", "words"), FAULTS.values(), ids=FAULTS)
def test_what_hands_on_the_limit_is_named(text: str, code: str, line: int, words: str) -> None:
    (cause,) = blame(text)
    assert (cause.code, cause.at.line if cause.at else 0) == (code, line)
    assert words in cause.text
    assert f"{WHO} has a soft memlock of 64KiB" in cause.text


@pytest.mark.parametrize("text", [fault[0] for fault in FAULTS.values()], ids=FAULTS)
def test_the_remedy_works_as_printed(text: str, tmp_path: Path) -> None:
    path = tmp_path / "etc/slurm.conf"
    path.parent.mkdir()
    path.write_text(text)
    facts = conf(text, "/etc/slurm.conf")
    line = read_propagation(facts.conf).line
    *edits, last = find_remedy(line, facts).commands
    assert last == ("scontrol", "reconfigure")
    for words in edits:
        paste(words, tmp_path)
    after = parse_slurm_conf({str(path): path.read_text()}, str(path))
    assert not after.faults
    assert not read_propagation(after).items & set(KEPT_BACK)


def test_what_cannot_be_edited_here_is_left_to_a_person() -> None:
    assert find_remedy(None, conf("", served=True)).commands == ()
    assert find_remedy(None, conf("", "/etc/x\n/slurm.conf")).commands == ()


def test_a_line_of_an_included_file_is_beaten_in_the_main_one() -> None:
    elsewhere = Declaration("/etc/slurm/a.conf", 3, "PropagateResourceLimits=ALL", "ALL")
    assert ">> /etc/slurm/slurm.conf" in find_remedy(elsewhere, conf("include a.conf\n")).lines[0]


@pytest.mark.parametrize("wanted", [HARD, NOFILE._replace(minimum=1024)])
def test_no_cause_for_what_is_met(wanted: Requirement) -> None:
    assert blame("", wanted) == []


def test_no_guess_where_nothing_explains_it() -> None:
    assert find_job_causes(MEMLOCK, Rlimit(1, 1), job(""), conf("")) == []
    quiet = job("PropagateResourceLimits=NONE\n")
    assert find_job_causes(MEMLOCK, Rlimit(65536, UNLIMITED), quiet, conf("")) == []


def through_pam(lines: str) -> JobPam:
    dialect = Dialect(1023, wildcard_root=False)
    read = tuple(read_lines({"/etc/security/limits.conf": lines}, dialect))
    start = Start({}, SLURMD, 1048576, resets=False)
    session = SessionFacts(User("alice", 1000, 1000), dialect, read, start)
    return JobPam(Declaration(C, 4, "UsePAM=1", "1"), session)


def test_a_login_that_has_less_than_slurmd_is_blamed_although_neither_has_enough() -> None:
    much = NOFILE._replace(minimum=10**6)
    assert [cause.code for cause in blame("", much)] == ["slurm-login-decides"]
    facts = job("")._replace(login={**LOGIN, "nofile": Rlimit(131072, 524288)})
    has = predict_job("nofile", facts)
    assert has.soft == 131072
    assert find_job_causes(much, has, facts, conf("")) == []


def test_pam_has_the_last_word_before_the_login() -> None:
    pam = through_pam("* - nofile 3333\n")
    (cause,) = blame("PropagateResourceLimits=NONE\n", HARD, pam)
    assert cause.code == "pam-stated-too-low"
    assert cause.text.startswith(f'{C}:4 "UsePAM=1" lets PAM decide: /etc/security/limits.conf:1')
    (cause,) = blame("PropagateResourceLimits=NONE\n", NOFILE, pam)
    assert cause.remedy.then == ""
    # The login has even less: first PAM's line is named, and the login's part after it.
    (cause,) = blame("", NOFILE, pam)
    assert cause.code == "pam-stated-too-low"


def test_the_login_is_blamed_beside_pam_only_where_it_would_do() -> None:
    """Where the login alone has enough, PAM's line is the one that must change."""
    pam = through_pam("* soft nofile 3333\n")
    facts = job("", pam)
    few = facts._replace(login={**LOGIN, "nofile": Rlimit(1024, 524288)})
    low = NOFILE._replace(minimum=3000)
    has = predict_job("nofile", few)
    found = find_job_causes(low, has, few, conf(""))
    assert [cause.code for cause in found] == ["slurm-login-decides"]
    same = few._replace(login={**LOGIN, "nofile": Rlimit(3333, 524288)})
    has = predict_job("nofile", same)
    found = find_job_causes(NOFILE, has, same, conf(""))
    assert [cause.code for cause in found] == ["pam-stated-too-low"]


def test_pam_that_changes_nothing_is_not_blamed() -> None:
    pam = through_pam("* - core 0\n")
    assert [cause.code for cause in blame("", NOFILE, pam)] == ["slurm-login-decides"]
    assert blame("", HARD._replace(minimum=10**6), pam) == []  # That is slurmd's.


def test_pam_that_starts_over_is_blamed_at_the_line_that_lets_it() -> None:
    start = Start({}, {**SLURMD, "memlock": Rlimit(8, 8)}, 1048576, resets=True)
    pam = through_pam("")
    pam = pam._replace(session=pam.session._replace(start=start))
    causes = blame("PropagateResourceLimits=NONE\n", MEMLOCK, pam)
    assert [cause.code for cause in causes] == ["slurm-pam-decides", "pam-soft-alone"]
    assert causes[0].at == pam.line


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "slurm-login-decides"),
        ("PropagateResourceLimits=ALL\n", "slurm-propagates"),
        ("PropagateResourceLimitsExcept=CPU\n", "slurm-except-lacks"),
        ("PropagateResourceLimits=NONE\n", "slurm-conf-not-read"),
    ],
)
def test_what_slurm_runs_with(text: str, code: str) -> None:
    stated = read_propagation(parse_slurm_conf({C: text}, C))
    cause = blame_propagation(stated.line, stated, RLIMITS, conf(text))
    assert cause
    assert cause.code == code
    assert "memlock, nofile of logins" in cause.text
    assert cause.remedy.commands[-1] == ("scontrol", "reconfigure")
    assert blame_propagation(stated.line, stated, ("core",), conf(text)) is None


def test_what_slurmd_must_have() -> None:
    both = Limit(65536, 131072, 200000)
    assert need_of_slurmd(both, "nofile", False) == Limit(None, 131072, 200000)
    assert need_of_slurmd(both, "stack", False) == Limit(65536, 131072, 200000)
    assert need_of_slurmd(both, "stack", True) == Limit(None, 131072, 200000)
    assert need_of_slurmd(Limit(soft=5), "stack", True) == Limit(None, 5)
    assert need_of_slurmd(Limit(soft=0), "core", False) == Limit(0, 0)
    assert need_of_slurmd(Limit(hard=0), "core", False) == Limit(None, 0)


@pytest.mark.parametrize(
    ("wanted", "pair", "propagated", "short"),
    [
        (HARD, Rlimit(1, 131072), False, False),
        (HARD, Rlimit(1, 131071), False, True),
        (NOFILE, Rlimit(1, 65536), False, False),
        (NOFILE, Rlimit(1, 65535), False, True),
        (MEMLOCK, Rlimit(1, UNLIMITED), False, True),
        (MEMLOCK, Rlimit(1, UNLIMITED), True, False),
    ],
)
def test_whether_slurmd_has_too_little(
    wanted: Requirement, pair: Rlimit, propagated: bool, short: bool
) -> None:
    assert is_slurmd_short(wanted, pair, propagated) is short


def test_who_else_may_be_at_fault() -> None:
    cause = blame_hand(77, "slurmd.service", "nofile", Rlimit(1024, 4096))
    assert (
        "slurmd (pid 77) was not started by slurmd.service, and has nofile 1024:4096" in cause.text
    )
    assert cause.remedy.commands[1] == ("systemctl", "restart", "slurmd.service")
    cause = blame_age("9.batch", 70, 77, "nofile", Rlimit(4096, 8192))
    assert "(slurmstepd, pid 70)" in cause.text
    assert "slurmd (pid 77) has nofile 4096:8192 now" in cause.text
    assert "job 9 end" in cause.remedy.text
    cause = blame_other_host("n3", "memlock", Rlimit(65536, 65536))
    assert "node n3" in cause.text
    assert cause.remedy.commands == ()


def test_a_job_whose_session_pam_refuses_gets_nothing() -> None:
    pam = through_pam("* - nofile 2000000\n")
    pam = pam._replace(session=pam.session._replace(dialect=Dialect(1023)))
    assert predict_job("memlock", job("PropagateResourceLimits=NONE\n", pam)) == Rlimit(0, 0)
    (cause,) = blame("PropagateResourceLimits=NONE\n", MEMLOCK, pam)
    assert (cause.code, cause.at and cause.at.line) == ("pam-above-nr-open", 1)
