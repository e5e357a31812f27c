# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that falls short is explained by slurmd, its unit, slurm.conf or another host, as it is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from mlhost_limits.core.cause import Cause, Remedy
from mlhost_limits.core.finding import Finding
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import RLIMITS, UNLIMITED, Rlimit
from mlhost_limits.host.look import Look, Process
from mlhost_limits.processes.causes import Verdict
from mlhost_limits.sessions.measure import SessionResult
from mlhost_limits.slurm import check as check_slurm
from mlhost_limits.slurm import diagnose as explain_slurm
from mlhost_limits.slurm import size_check as check_slurm_logins
from mlhost_limits.slurm.check import PLACE, Login, find_partition
from mlhost_limits.slurm.confines import Confines, Level, Size
from mlhost_limits.slurm.measure import Job, Node
from mlhost_limits.slurm.policy import SlurmPolicy
from mlhost_limits.slurm.read import SlurmFiles
from mlhost_limits.slurm.slurm_conf import parse_slurm_conf

C = "/etc/slurm/slurm.conf"
NO_LIMIT = Rlimit(UNLIMITED, UNLIMITED)
FREE = dict.fromkeys(RLIMITS, NO_LIMIT)
GOOD = {**FREE, "nofile": Rlimit(131072, 131072)}
POLICY = SlurmPolicy({"nofile": Limit(65536, 131072), "memlock": Limit(UNLIMITED, UNLIMITED)})
LOW_LOGIN = {**FREE, "nofile": Rlimit(1024, 524288), "memlock": Rlimit(65536, 65536)}
UNIT = "0::/system.slice/slurmd.service"
STALE = Cause("unit-not-restarted", "slurmd has run since before", Remedy("restart it"))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


class Host:
    """A host with Slurm on it, as far as its limits go."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch
        self.slurmd: Mapping[str, Rlimit] | None = GOOD
        self.cgroup = UNIT
        self.conf = "PropagateResourceLimits=NONE\n"
        self.shown = {"propagateresourcelimits": "NONE", "propagateresourcelimitsexcept": "(null)"}
        self.login: Mapping[str, Rlimit] = LOW_LOGIN
        self.job: Mapping[str, Rlimit] | None = GOOD
        self.confines: Confines | None = None
        self.adopts = False
        self.login_of_job: SessionResult | None = None
        self.steps: list[tuple[str, int]] = []
        self.held: Mapping[str, Rlimit] = GOOD
        self.verdicts: dict[str, Verdict] = {
            item: Verdict((), GOOD[item], GOOD[item]) for item in POLICY.limits
        }

    def check(self, policy: SlurmPolicy = POLICY, asks: bool = True) -> list[Finding]:
        slurmd = Process(7, "slurmd", 0, self.cgroup, 1) if self.slurmd else None
        files = SlurmFiles(C, {C: self.conf}, parse_slurm_conf({C: self.conf}, C))
        job = Job(None, "it is busy")
        if self.job:
            job = Job(dict(self.job), "", "9", "n1", self.confines)

        def run(*words: object) -> Job:
            meanwhile = words[5] if len(words) > 5 else None
            if callable(meanwhile) and self.job:
                meanwhile()
            return job

        told: dict[tuple[object, str], object] = {
            (explain_slurm, "find_slurmd"): lambda: slurmd,
            (explain_slurm, "read_slurm_files"): lambda _slurmd: files,
            (explain_slurm, "read_limits"): lambda _pid: dict(self.slurmd or {}),
            (check_slurm, "find_steps"): lambda _processes: self.steps,
            (check_slurm, "read_limits"): lambda _pid: self.held,
            (explain_slurm, "show_config"): lambda: self.shown,
            (explain_slurm, "judge_unit"): lambda *_: self.verdicts,
            (check_slurm, "find_node"): lambda _pid: Node("n1", {"debug": ("idle", "")}, "debug"),
            (check_slurm, "open_login"): lambda *_: Login(
                "alice", "session:alice@sshd", self.login
            ),
            (check_slurm, "try_job"): run,
            (check_slurm_logins, "find_adopting"): lambda _files: self.adopts,
            (check_slurm_logins, "measure_sessions"): lambda *_, **__: [self.login_of_job],
        }
        for (module, name), function in told.items():
            self.patch.setattr(module, name, function)
        look = Look()
        jobs = list(check_slurm.check_slurm(policy, None, asks, "quiet", look))
        return [*jobs, *check_slurm.check_steps(policy, look)]


def told(findings: list[Finding]) -> dict[str, tuple[str, ...]]:
    """Return the codes of what falls short, now or later, by limit and bound."""
    return {
        f"{one.requirement.item} {one.requirement.bound}": tuple(cause.code for cause in one.causes)
        for one in findings
        if one.status == "fail" or one.fails_later
    }


def test_a_job_as_it_shall_be_is_given_no_cause(host: Host) -> None:
    findings = host.check()
    assert {finding.status for finding in findings} == {"pass"}
    assert {finding.requirement.place for finding in findings} == {PLACE}
    assert findings[0].observation.how == "/proc/self/limits in job 9 of alice on n1"
    assert told(findings) == {}
    assert {tuple(one.outlook) for one in findings} == {("", "pass", "pass")}


def test_a_low_login_whose_limits_are_taken_over(host: Host) -> None:
    host.conf = "PropagateResourceLimits=ALL\n"
    host.job = {**GOOD, "nofile": Rlimit(1024, 131072), "memlock": Rlimit(65536, UNLIMITED)}
    findings = host.check()
    code = ("slurm-propagates",)
    assert told(findings) == {"nofile soft": code, "memlock soft": code}
    assert findings[0].outlook == ("", "fail", "fail")


def test_a_slurmd_that_is_older_than_its_files(host: Host) -> None:
    host.slurmd = host.job = {**GOOD, "memlock": Rlimit(65536, 65536)}
    host.verdicts["memlock"] = Verdict((STALE,), NO_LIMIT, NO_LIMIT)
    findings = host.check()
    assert told(findings) == {
        "memlock soft": ("unit-not-restarted",),
        "memlock hard": ("unit-not-restarted",),
    }
    assert findings[-1].outlook == ("", "pass", "pass")


def test_what_is_right_now_and_not_after_a_restart(host: Host) -> None:
    low = Rlimit(65536, 65536)
    host.verdicts["memlock"] = Verdict((STALE,), low, low)
    assert told(host.check()) == {
        "memlock soft": ("unit-not-restarted",),
        "memlock hard": ("unit-not-restarted",),
    }
    host.verdicts["memlock"] = Verdict((), NO_LIMIT, NO_LIMIT)
    host.conf = "PropagateResourceLimits=MEMLOCK\n"  # slurmd has not read it yet.
    assert told(host.check()) == {"memlock soft": ("slurm-propagates",)}


def test_a_slurmd_that_was_started_by_hand(host: Host) -> None:
    host.cgroup = "0::/user.slice/user-0.slice/session-3.scope"
    host.slurmd = host.job = {**GOOD, "memlock": Rlimit(65536, 65536)}
    findings = host.check()
    assert told(findings)["memlock hard"] == ("slurm-started-by-hand",)
    assert findings[-1].outlook == ("", "unknown", "unknown")


def test_a_job_that_did_not_run_and_could_not_have_done(host: Host) -> None:
    host.job = None
    assert [finding.status for finding in host.check()] == ["unknown"] * 4
    host.slurmd = {**GOOD, "memlock": Rlimit(65536, 65536)}
    host.verdicts["memlock"] = Verdict((STALE,), NO_LIMIT, NO_LIMIT)
    findings = host.check()
    assert told(findings) == {
        "memlock soft": ("unit-not-restarted",),
        "memlock hard": ("unit-not-restarted",),
    }
    assert findings[-1].observation.how.endswith("above which no job gets; it is busy")
    assert told(host.check(asks=False)) == told(findings)


def test_a_job_on_another_host(host: Host) -> None:
    host.slurmd = None
    host.job = {**GOOD, "memlock": Rlimit(65536, 65536)}
    assert told(host.check())["memlock hard"] == ("slurm-daemon-elsewhere",)
    host.conf = ""
    host.job = {**GOOD, "memlock": Rlimit(65536, UNLIMITED)}
    assert told(host.check()) == {"memlock soft": ("slurm-login-decides",)}


def test_what_nothing_explains_is_not_guessed_at(host: Host) -> None:
    host.job = {**GOOD, "memlock": Rlimit(4096, 4096)}
    findings = host.check()
    assert told(findings) == {"memlock soft": (), "memlock hard": ()}
    assert findings[-1].outlook == ("", "unknown", "unknown")


def test_what_slurm_hands_on_is_judged_where_the_policy_says(host: Host) -> None:
    policy = SlurmPolicy({}, (), frozenset({"core"}))
    (finding,) = host.check(policy)
    assert (finding.status, finding.observation.value, finding.causes) == ("pass", "none", ())
    host.shown["propagateresourcelimits"] = "CORE,CPU"
    (finding,) = host.check(policy)
    assert (finding.status, [cause.code for cause in finding.causes]) == (
        "fail",
        ["slurm-conf-not-read"],
    )
    host.conf = host.shown["propagateresourcelimits"] = ""
    host.shown = {}
    (finding,) = host.check(policy)
    assert (finding.status, finding.observation.reason) == (
        "unknown",
        "Slurm's controller is silent",
    )


def test_a_step_that_runs_as_it_shall_is_not_told_of(host: Host) -> None:
    host.steps = [("9.batch", 70)]
    assert {one.requirement.place for one in host.check()} == {PLACE}


def test_a_step_is_older_than_the_limits_that_slurmd_has(host: Host) -> None:
    host.steps = [("9.batch", 70)]
    host.held = {**GOOD, "nofile": Rlimit(4096, 4096)}
    (finding,) = [one for one in host.check() if one.requirement.place == f"{PLACE}/9.batch"]
    assert [cause.code for cause in finding.causes] == ["slurm-step-older"]
    assert finding.observation.how == "/proc/70/limits of slurmstepd"


def test_where_slurmd_has_too_little_that_is_why_its_steps_have(host: Host) -> None:
    host.steps = [("9.batch", 70)]
    host.slurmd = host.job = host.held = {**GOOD, "nofile": Rlimit(4096, 4096)}
    host.verdicts["nofile"] = Verdict((STALE,), GOOD["nofile"], GOOD["nofile"])
    found = [one for one in host.check() if one.requirement.place == f"{PLACE}/9.batch"]
    assert [cause.code for one in found for cause in one.causes] == ["unit-not-restarted"]


def test_of_many_steps_some_are_told(host: Host) -> None:
    host.steps = [(f"{number}.0", number) for number in range(100)]
    host.held = {**GOOD, "nofile": Rlimit(4096, 4096)}
    found = {one.requirement.place for one in host.check()} - {PLACE}
    assert len(found) == 20


SIZED = SlurmPolicy({}, size=Size(200 * 2**20, 2))
IN_JOB = "0::/system.slice/n1_slurmstepd.scope/job_9/step_extern/user/task_special"


def confine(memory: int, cpus: int) -> Confines:
    return Confines((Level("/sys/fs/cgroup/x/job_9", memory * 2**20),), (), cpus, 2**30)


def test_a_job_that_gets_what_it_asks_for(host: Host) -> None:
    host.confines = confine(200, 2)
    memory, cpus = host.check(SIZED)
    assert [memory.status, cpus.status] == ["pass", "pass"]
    assert (memory.observation.value, cpus.observation.value) == (200 * 2**20, 2)
    assert memory.observation.how.startswith("/sys/fs/cgroup/x/job_9 bounds the memory of job 9")
    assert told([memory, cpus]) == {}


def test_a_job_that_gets_less_memory_and_nobody_says_why_of_its_cpus(host: Host) -> None:
    host.confines = confine(100, 1)
    assert told(host.check(SIZED)) == {
        "memory value": ("slurm-cgroup-not-read",),
        "cpus value": (),
    }


def test_the_size_of_a_job_that_did_not_run_is_unknown(host: Host) -> None:
    host.job = None
    assert {finding.status for finding in host.check(SIZED)} == {"unknown"}
    assert {finding.status for finding in host.check(SIZED, asks=False)} == {"unknown"}


def test_a_login_that_joins_a_job_is_judged_beside_it(host: Host) -> None:
    host.adopts = True
    low = {**GOOD, "nofile": Rlimit(1024, 524288)}
    host.login_of_job = SessionResult("sshd", "nobody", low, "libpam", opens=True, cgroup=IN_JOB)
    found = [one for one in host.check() if one.requirement.place == f"{PLACE}@ssh"]
    assert [one.status for one in found] == ["fail", "pass", "pass", "pass"]
    assert "; adopted into job 9" in found[0].observation.how


def test_a_login_that_is_refused_while_its_job_runs(host: Host) -> None:
    host.adopts = True
    host.login_of_job = SessionResult("sshd", "alice", None, "", "you have no active jobs")
    host.shown["prologflags"] = "Alloc"
    found = [one for one in host.check() if one.requirement.place == f"{PLACE}@ssh"]
    assert {one.observation.reason for one in found} == {"you have no active jobs"}
    assert {cause.code for one in found for cause in one.causes} == {"slurm-not-contained"}


def test_no_login_joins_a_job_that_does_not_run(host: Host) -> None:
    host.adopts, host.job = True, None
    found = [one for one in host.check() if one.requirement.place == f"{PLACE}@ssh"]
    assert {one.status for one in found} == {"unknown"}
    assert [cause for one in found for cause in one.causes] == []


def test_a_program_that_calls_itself_slurmstepd_is_no_step(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, real = Process(5, "slurmstepd", 0, "", 1), Process(6, "slurmstepd", 0, "", 1)
    owners = {5: "alice", 6: ""}
    monkeypatch.setattr(check_slurm, "find_owner", lambda one: owners[one.pid])
    found = [one for one in (fake, real) if check_slurm._is_slurmstepd(one)]
    assert found == [real]
    assert not check_slurm._is_slurmstepd(real._replace(comm="python"))

    def end(_process: Process) -> str:
        raise ProcessLookupError("gone")

    monkeypatch.setattr(check_slurm, "find_owner", end)
    assert not check_slurm._is_slurmstepd(real)


@pytest.mark.parametrize(
    ("node", "partition"),
    [
        (Node("n1", {"gpu": ("idle", ""), "all": ("idle", "")}, "all"), "all"),
        (Node("n1", {"gpu": ("idle", ""), "all": ("idle", "")}), "gpu"),
        (Node("n1", {}), ""),
        (Node("", {"gpu": ("", ""), "all": ("", "")}, "all"), "all"),
        (Node("", {"gpu": ("", "")}), ""),
    ],
)
def test_a_job_that_names_no_partition_goes_where_slurm_puts_it(node: Node, partition: str) -> None:
    """A host that runs no slurmd is of no partition, so that only the default one is left."""
    assert find_partition(node) == partition
