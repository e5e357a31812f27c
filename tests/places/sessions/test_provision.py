# SPDX-License-Identifier: GPL-3.0-or-later
"""The host is asked what the refusals must know, and only where something would be written."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from mlhost_limits.core.edit import Edit
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.reader import Limit
from mlhost_limits.kernel import use_read as kernel_use
from mlhost_limits.kernel.policy import KernelValue
from mlhost_limits.sessions import provision as lockouts
from mlhost_limits.sessions import provision as logins
from mlhost_limits.sessions.pam_limits import LIMITS_CONF, LIMITS_D
from mlhost_limits.sessions.policy import SessionRule
from mlhost_limits.sessions.provision import find_kernel_lockouts, find_session_lockouts

from tests.worlds.distributions import DEBIAN

CORE = (SessionRule(("*",), {"core": Limit(0, 0)}),)
DROP_IN = f"{LIMITS_D}/90-mlhost.conf"
NO_SESSION = "so no session opens here, not even root's"
CHANGE = SectionPlan((Edit(DROP_IN, b"* - nofile 9999\n", b"* - nofile 65536\n"),))


@pytest.fixture(autouse=True)
def _sound_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockouts, "find_broken_files", lambda _strict: [])
    monkeypatch.setattr(lockouts, "read_dialect", lambda: DEBIAN.pam)


@pytest.mark.parametrize(
    ("path", "reason", "target", "told"),
    [
        (LIMITS_CONF, "is missing", DROP_IN, True),
        (LIMITS_CONF, "is missing", LIMITS_CONF, False),  # Ours to make.
        (LIMITS_CONF, "is a link to /x, which cannot be opened", LIMITS_CONF, True),
        (f"{LIMITS_D}/a.conf", "is a named pipe, on which every login waits", LIMITS_CONF, True),
    ],
)
def test_a_host_that_is_locked_is_told(
    path: str, reason: str, target: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockouts, "find_broken_files", lambda _strict: [(path, reason)])
    said = list(find_session_lockouts(CORE, SectionPlan(), target))
    assert said == [f"{path}: {reason}, {NO_SESSION}"] * told


@pytest.mark.parametrize(
    ("plan", "looks"),
    [(SectionPlan(), False), (CHANGE, True), (SectionPlan(problems=("x",)), True)],
    ids=["no change", "a change", "a refusal, so that all is said at once"],
)
def test_processes_are_looked_at_for_a_change_alone(
    plan: SectionPlan, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def look(folders: Iterable[str]) -> logins.Logins:
        asked.append(list(folders))
        return logins.Logins()

    monkeypatch.setattr(logins, "find_missing_conf", lambda: [("/etc/pam.d/su:3", "/x", "su")])
    monkeypatch.setattr(logins, "read_logins", look)
    rule = SessionRule(("bob",), {"chroot": Limit(text="/srv/a"), "nofile": Limit(4, 4)})
    said = list(find_session_lockouts((rule,), plan, DROP_IN))
    conf = "/etc/pam.d/su:3: conf=/x is missing, so no session of su opens here"
    assert said[0].startswith("sessions[0].limits.nofile: 4 is too little")
    assert said[1:] == [conf] * looks
    assert asked == [["/srv/a"]] * looks


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (KernelValue(minimum=1), []),
        (
            KernelValue(exact="65535"),
            [
                f"kernel.fs.nr_open: 65535 is too low: {DROP_IN}:1 has a nofile of 65536, which"
                " setrlimit(2) would refuse; 65536 or more is accepted"
            ],
        ),
        (KernelValue(exact="65536"), []),
    ],
    ids=["a minimum", "below what will be stated", "enough"],
)
def test_nr_open_is_held_against_what_the_files_will_state(
    value: KernelValue, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {DROP_IN: "* - nofile 99999\n", LIMITS_CONF: "# x\n* - nofile unlimited\n* - core 9\n"}
    monkeypatch.setattr(lockouts, "read_limits_files", lambda: files)
    monkeypatch.setattr(kernel_use, "find_largest_nofile", lambda: (1024, "sshd (pid 7)"))
    assert list(find_kernel_lockouts({"fs.nr_open": value}, CHANGE)) == said
