# SPDX-License-Identifier: GPL-3.0-or-later
"""What SELinux takes of a session's soft limits is asked of its policy, and blamed on it."""

from __future__ import annotations

import pytest
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.values import UNLIMITED, Rlimit, User
from mlhost_limits.sessions import selinux_reset_read as reset_read
from mlhost_limits.sessions.causes import find_session_causes
from mlhost_limits.sessions.facts import SessionFacts, predict_session
from mlhost_limits.sessions.limits_conf import LimitsLine, parse_limits_conf
from mlhost_limits.sessions.model import start_with
from mlhost_limits.sessions.selinux_reset_read import find_soft_reset
from mlhost_limits.sessions.soft_reset import SoftReset, apply_reset

SSHD, USER = b"system_u:system_r:sshd_t:s0", b"unconfined_u:unconfined_r:unconfined_t:s0"
CRON, JOB = b"system_u:system_r:crond_t:s0", b"system_u:system_r:system_cronjob_t:s0"
KERNELS = {"nofile": Rlimit(1024, 4096), "memlock": Rlimit(8 << 20, 8 << 20)}
SOFT = Requirement("session:alice@sshd", "nofile", "soft", 65536)
LOST = SoftReset("sshd_t", ("unconfined_t",), {"nofile": 1024, "memlock": 8 << 20})


@pytest.fixture
def policy(monkeypatch: pytest.MonkeyPatch) -> set[tuple[bytes, bytes]]:
    """Stand in for a host's policy, of which this is what it allows."""
    allowed: set[tuple[bytes, bytes]] = set()
    contexts = {10: SSHD, 20: CRON, 30: b"system_u:system_r:getty_t:s0"}
    for name, answer in {
        "is_enforced": lambda: True,
        "read_context": contexts.__getitem__,
        "find_login_context": lambda _user, _source: USER,
        "find_default_context": lambda _known, _source: JOB,
        "find_domain": lambda _source, _program: b"system_u:system_r:local_login_t:s0",
        "is_allowed": lambda source, target, _permission: (source, target) in allowed,
        "read_comm": lambda _pid: "kthreadd",
        "read_limits": lambda _pid: KERNELS,
    }.items():
        monkeypatch.setattr(reset_read, name, answer)
    return allowed


@pytest.mark.parametrize(
    ("service", "pid", "source", "targets"),
    [
        ("sshd", 10, "sshd_t", ("unconfined_t",)),
        ("cron", 20, "crond_t", ("unconfined_t", "system_cronjob_t")),
        ("crond", 20, "crond_t", ("unconfined_t", "system_cronjob_t")),
        ("login", 30, "local_login_t", ("unconfined_t",)),
    ],
)
@pytest.mark.usefixtures("policy")
def test_who_may_not_inherit_starts_with_the_kernels_limits(
    service: str, pid: int, source: str, targets: tuple[str, ...]
) -> None:
    found = find_soft_reset(service, "alice", pid)
    assert found == SoftReset(source, targets, {"nofile": 1024, "memlock": 8 << 20})


@pytest.mark.usefixtures("policy")
def test_what_sshd_runs_for_a_session_may_have_a_domain_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = b"system_u:system_r:sshd_session_t:s0"
    monkeypatch.setattr(reset_read, "find_domain", lambda _source, _program: session)
    monkeypatch.setattr("os.path.exists", lambda path: path == "/usr/libexec/openssh/sshd-session")
    found = find_soft_reset("sshd", "alice", 10)
    assert found
    assert found.source == "sshd_session_t"


@pytest.mark.parametrize("context", [b"", b"unconfined", b"a:b", b"a:b:c d:s0"])
@pytest.mark.usefixtures("policy")
def test_what_is_not_a_context_is_told(context: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reset_read, "read_context", lambda _pid: context)
    with pytest.raises(OSError, match="is not a context of a process"):
        find_soft_reset("sshd", "alice", 10)


def test_what_the_policy_allows_stays(
    policy: set[tuple[bytes, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy |= {(SSHD, USER), (CRON, USER)}
    assert find_soft_reset("sshd", "alice", 10) is None
    found = find_soft_reset("cron", "alice", 20)
    assert found
    assert found.targets == ("system_cronjob_t",)
    monkeypatch.setattr(reset_read, "is_enforced", lambda: False)
    assert find_soft_reset("cron", "alice", 20) is None


@pytest.mark.usefixtures("policy")
def test_nobody_guesses_what_the_kernel_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reset_read, "read_comm", lambda _pid: "bash")
    with pytest.raises(OSError, match="are not known: no kthreadd here"):
        find_soft_reset("sshd", "alice", 10)


def test_a_lower_hard_limit_counts_before_the_kernels() -> None:
    limits = {"nofile": Rlimit(65536, 65536), "memlock": Rlimit(UNLIMITED, 65536)}
    assert apply_reset(limits, LOST) == {
        "nofile": Rlimit(1024, 65536),
        "memlock": Rlimit(65536, 65536),
    }
    assert apply_reset(limits, None) == limits


def test_the_limits_files_are_blamed_first() -> None:
    """Both have to be put right, and SELinux alone where the files state enough."""
    start = start_with(Rlimit(1024, 524288), 1048576, resets=True)
    lines: tuple[LimitsLine, ...] = ()
    facts = SessionFacts(User("alice", 1000, 1000), Dialect(), lines, start, reset=LOST)
    codes = [cause.code for cause in find_session_causes(SOFT, facts)]
    assert codes == ["pam-not-stated", "selinux-resets-soft-limits"]
    stated = facts._replace(lines=tuple(parse_limits_conf("* - nofile 65536", "/a")))
    assert predict_session(stated)["nofile"] == Rlimit(1024, 65536)
    (cause,) = find_session_causes(SOFT, stated)
    assert cause.remedy.commands[-1] == ("semodule", "-i", "/usr/local/share/limits_sshd_t.cil")
    assert not find_session_causes(SOFT._replace(bound="hard"), stated)
