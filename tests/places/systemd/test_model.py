# SPDX-License-Identifier: GPL-3.0-or-later
"""A service's next start is predicted as systemd 252 was measured to start it."""

from __future__ import annotations

import pytest
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.values import Declaration, Rlimit, User
from mlhost_limits.sessions.facts import SessionFacts
from mlhost_limits.sessions.model import Start
from mlhost_limits.sessions.pam_limits import read_lines
from mlhost_limits.systemd.model import (
    Manager,
    Pam,
    find_user_defaults,
    outlive_boot,
    predict_unit,
)

from tests.worlds.unit_world import (
    CONF,
    MANAGER,
    MIB,
    PID_1,
    RUN_D,
    UNIT,
    D,
    manager,
    service,
    unit,
)

LOWERED = MANAGER._replace(nr_open=65536)
RAISED = MANAGER._replace(nr_open=2097152)
ABOVE = MANAGER._replace(nr_open=100000)


def nofile(files: dict[str, str], around: Manager = MANAGER) -> Rlimit | None:
    given = predict_unit(unit(files, around))
    return given and given["nofile"]


def test_what_nobody_states_is_systemd_s_own() -> None:
    given = predict_unit(unit({UNIT: service()}))
    assert given
    assert given["nofile"] == Rlimit(1024, 524288)
    assert given["memlock"] == Rlimit(8 * MIB, 8 * MIB)
    assert given["core"] == PID_1["core"]


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({UNIT: service("LimitNOFILE=5:6")}, Rlimit(5, 6)),
        ({UNIT: service(), CONF: manager("DefaultLimitNOFILE=7")}, Rlimit(7, 7)),
        (
            {UNIT: service("LimitNOFILE=5"), D + "/a.conf": service("LimitNOFILE=8")},
            Rlimit(8, 8),
        ),
        ({UNIT: service("LimitNOFILE=infinity")}, Rlimit(1048576, 1048576)),
        ({UNIT: service("LimitNOFILE=1024:infinity")}, Rlimit(1024, 1048576)),
        ({UNIT: "[Service\n"}, None),
        ({}, Rlimit(1024, 524288)),
    ],
)
def test_the_last_line_counts_and_the_kernel_cuts_it(
    files: dict[str, str], limit: Rlimit | None
) -> None:
    assert nofile(files) == limit


@pytest.mark.parametrize(
    ("line", "around", "limit"),
    [
        ("LimitNOFILE=infinity", RAISED, Rlimit(1048576, 1048576)),
        ("LimitNOFILE=2000000", RAISED, Rlimit(2000000, 2000000)),
        ("LimitNOFILE=2097152", RAISED, Rlimit(2097152, 2097152)),
        ("LimitNOFILE=3000000", RAISED, Rlimit(1048576, 1048576)),
        ("LimitNOFILE=524288", LOWERED, None),
        ("LimitNOFILE=65536", LOWERED, Rlimit(65536, 65536)),
        ("", LOWERED, Rlimit(1024, 65536)),
        ("", LOWERED._replace(at_boot=True), None),
    ],
)
def test_above_nr_open_systemd_takes_its_own_limit_or_fails(
    line: str, around: Manager, limit: Rlimit | None
) -> None:
    """All measured: the failure is status 205/LIMITS."""
    assert nofile({UNIT: service(line)}, around) == limit


def test_a_user_s_manager_cannot_raise_its_own_limits() -> None:
    own = {**PID_1, "nofile": Rlimit(20000, 20000), "memlock": Rlimit(MIB, MIB)}
    around = MANAGER._replace(own=own, defaults=find_user_defaults(own), may_raise=False)
    given = predict_unit(unit({UNIT: service("LimitNOFILE=3000:infinity")}, around))
    assert given
    assert given["nofile"] == Rlimit(3000, 20000)
    assert given["memlock"] == Rlimit(MIB, MIB)
    assert find_user_defaults(own)["nofile"] == Rlimit(1024, 20000)


def test_pam_has_the_last_word() -> None:
    """Debian 12's pam_limits starts over from process 1, whatever the unit states."""
    dialect = Dialect(1023, wildcard_root=False)
    lines = tuple(read_lines({"/etc/security/limits.conf": "alice hard nofile 4096\n"}, dialect))
    alice = User("alice", 1000, 1000)
    session = SessionFacts(alice, dialect, lines, Start({}, PID_1, 0, resets=True))
    line = Declaration(UNIT, 3, "PAMName=login", "login")
    facts = unit({UNIT: service("LimitNOFILE=65536:131072")})._replace(pam=Pam(line, session))
    given = predict_unit(facts)
    assert given
    assert given["nofile"] == Rlimit(1024, 4096)
    assert given["memlock"] == PID_1["memlock"]


def test_what_lies_in_run_is_gone_after_a_boot() -> None:
    conf_d = "/usr/lib/systemd/system.conf.d"
    files = {UNIT: service(), D + "/a.conf": "", RUN_D + "/b.conf": "", conf_d + "/c.conf": ""}
    kept = outlive_boot(unit(files).files)
    assert kept.main
    assert [one.path for one in kept.dropins] == [D + "/a.conf"]
    assert len(kept.manager_dropins) == 1
    transient = kept._replace(main=kept.main._replace(path="/run/systemd/transient/x.service"))
    assert outlive_boot(transient).main is None
    assert outlive_boot(kept._replace(main=None)).main is None


@pytest.mark.parametrize(("control", "starts"), [(True, False), (False, True)])
def test_a_unit_whose_session_pam_refuses_does_not_start(control: bool, starts: bool) -> None:
    """Without Debian's patches a limit that the kernel refuses ends the session."""
    dialect = Dialect(1023)
    text = "alice - nofile 2000000\n"
    lines = tuple(read_lines({"/etc/security/limits.conf": text}, dialect))
    start = Start({}, PID_1, 0, resets=False)
    alice = User("alice", 1000, 1000)
    session = SessionFacts(alice, dialect, lines, start, is_fatal=control)
    facts = unit({UNIT: service("LimitNOFILE=65536:131072")})
    given = predict_unit(facts._replace(pam=Pam(Declaration(UNIT, 3, "PAMName=x", "x"), session)))
    assert (given is not None) == starts
    if given:
        assert given["nofile"] == Rlimit(65536, 131072)
