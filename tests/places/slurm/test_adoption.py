# SPDX-License-Identifier: GPL-3.0-or-later
"""A login that joins a job is told from one that does not, and from one that leaves it again."""

from __future__ import annotations

import pytest
from mlhost_limits.slurm.adoption import (
    blame_flags,
    describe_adoption,
    find_adopting,
    find_leaving,
    is_adopted,
)
from mlhost_limits.slurm.causes import ConfFacts
from mlhost_limits.slurm.slurm_conf import parse_slurm_conf

C = "/etc/slurm/slurm.conf"
SSHD, COMMON = "/etc/pam.d/sshd", "/etc/pam.d/common-session"
ADOPTS = "account required pam_slurm_adopt.so log_level=debug"
PAM = {SSHD: f"#{ADOPTS}\n{ADOPTS}\n@include common-session\n", COMMON: ""}
V2 = "0::/system.slice/host_slurmstepd.scope/job_2/step_extern/user/task_special"
V1 = "9:cpuset:/slurm/uid_1000/job_2/step_extern\n1:name=systemd:/system.slice/ssh.service"


def conf(text: str, served: bool = False) -> ConfFacts:
    return ConfFacts(C, text, parse_slurm_conf({C: text}, C), (), served)


def test_the_line_that_adopts_and_the_one_that_takes_out_again() -> None:
    at = find_adopting(PAM)
    assert at
    assert (at.place, at.text) == (f"{SSHD}:2", ADOPTS)
    assert find_leaving(PAM) is None
    leaving = find_leaving({**PAM, COMMON: "session optional pam_systemd.so"})
    assert leaving
    assert leaving.place == f"{COMMON}:1"
    assert find_adopting({SSHD: "@include gone"}) is None


@pytest.mark.parametrize(
    ("cgroup", "job", "adopted"),
    [
        (V2, "2", True),
        (V1, "2", True),
        ("0::/slurm/job_2\n1:x:/", "2", True),
        (V2, "20", False),
        ("0::/user.slice/user-1000.slice/session-3.scope", "2", False),
    ],
)
def test_a_cgroup_tells_whether_a_login_was_adopted(cgroup: str, job: str, adopted: bool) -> None:
    assert is_adopted(cgroup, job) == adopted
    said = "adopted into job" if adopted else "not adopted into job"
    assert describe_adoption(cgroup, job, None) == f"{said} {job}"


def test_a_login_that_is_taken_out_again() -> None:
    leaving = find_leaving({**PAM, COMMON: "session optional pam_systemd.so"})
    said = f'taken out of it again by {COMMON}:1 "session optional pam_systemd.so"'
    assert describe_adoption(V2, "2", leaving) == f"adopted into job 2, and {said}"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 0, "PrologFlags=Contain"),
        ("PrologFlags=NONE", 1, "PrologFlags=Contain"),
        ("PrologFlags=Alloc,X11", 1, "PrologFlags=Alloc,X11,Contain"),
    ],
)
def test_jobs_without_a_step_for_logins(text: str, line: int, says: str) -> None:
    cause = blame_flags({"prologflags": "Alloc"}, conf(text))
    assert cause
    assert (cause.at.line if cause.at else 0) == line
    assert any(says in word for word in cause.remedy.commands[0])
    assert cause.remedy.commands[-1] == ("scontrol", "reconfigure")
    served = blame_flags({"prologflags": "Alloc"}, conf(text, served=True))
    assert served
    assert served.remedy.commands == ()


def test_a_flag_that_was_not_read_yet() -> None:
    cause = blame_flags({"prologflags": "(null)"}, conf("PrologFlags=contain"))
    assert cause
    assert "was not read yet" in cause.text
    assert cause.remedy.commands == (("scontrol", "reconfigure"),)


@pytest.mark.parametrize("shown", [{}, {"prologflags": "Alloc,Contain"}])
def test_where_jobs_have_one_or_nobody_knows_nothing_is_blamed(shown: dict[str, str]) -> None:
    assert blame_flags(shown, conf("")) is None
