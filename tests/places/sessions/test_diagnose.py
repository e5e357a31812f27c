# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot makes of a session that is open now."""

from __future__ import annotations

from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.finding import FAIL, PASS, Finding, Observation, Requirement
from mlhost_limits.core.values import Rlimit, User
from mlhost_limits.sessions import diagnose
from mlhost_limits.sessions.facts import SessionFacts
from mlhost_limits.sessions.limits_conf import parse_limits_conf
from mlhost_limits.sessions.measure import SessionResult
from mlhost_limits.sessions.model import start_with

SOFT = Requirement("session:alice@sshd", "nofile", "soft", 1024)
TEXT = "* hard nofile 2000000\n* soft nofile 65536\n"


def judge_boot(is_fatal: bool) -> Finding:
    start = start_with(Rlimit(1024, 4096), 3000000, resets=False)
    lines = tuple(parse_limits_conf(TEXT, "/etc/security/limits.conf"))
    facts = SessionFacts(User("alice", 1000, 1000), Dialect(), lines, start, is_fatal=is_fatal)
    booted = facts._replace(start=start._replace(nr_open=1048576))
    now = {"nofile": Rlimit(65536, 2000000)}
    seen = SessionResult("sshd", "alice", now, "measured", opens=True, base=start.inherited)
    finding = Finding(PASS, SOFT, Observation("65536", "measured"))
    foretold = (diagnose._foretell(one) for one in (facts, booted))
    return diagnose._explain(finding, *foretold, (seen, None))


def test_a_session_that_a_lower_nr_open_ends_does_not_pass_after_a_boot() -> None:
    finding = judge_boot(is_fatal=True)
    assert (finding.status, finding.outlook.after_boot) == (PASS, FAIL)
    assert [cause.code for cause in finding.causes] == ["pam-above-nr-open"]


def test_where_the_stack_does_not_mind_it_opens_with_what_it_had() -> None:
    finding = judge_boot(is_fatal=False)
    assert (finding.outlook.after_boot, finding.causes) == (PASS, ())
