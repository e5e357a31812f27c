# SPDX-License-Identifier: GPL-3.0-or-later
"""A run is judged against the process that will run it, before it starts."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mlhost_limits.check_host import check_host
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.finding import (
    FAIL,
    PASS,
    UNKNOWN,
    Finding,
    Observation,
    Requirement,
    find_unlooked,
    judge_limits,
)
from mlhost_limits.core.policy import CheckOptions, Policy
from mlhost_limits.core.reader import Limit, PolicyError
from mlhost_limits.core.values import UNLIMITED, Rlimit, User
from mlhost_limits.host.look import Look
from mlhost_limits.host.manager_read import Bounds
from mlhost_limits.kernel.use_read import read_memory_size
from mlhost_limits.services import logind_check as check_logind
from mlhost_limits.services.policy import ServicesPolicy, UnitRule
from mlhost_limits.sessions.policy import SessionRule
from mlhost_limits.shared_memory.model import Quota
from mlhost_limits.slurm.policy import SlurmPolicy
from mlhost_limits.systemd.read import Seen
from mlhost_limits.training import check as subject
from mlhost_limits.training import runner_read as training_runner
from mlhost_limits.training import survey_read as training_limits
from mlhost_limits.training import survey_read as training_survey
from mlhost_limits.training.causes import Room
from mlhost_limits.training.policy import NEEDS, DeepSpeed, Gpus, Training
from mlhost_limits.training.runner_read import Cpus, Runner
from mlhost_limits.training.tasks import TaskRoom

MIB, GIB = 2**20, 2**30
RUN = Training(workers=8, prefetch=4, tensors_per_batch=4, batch_size=MIB)
WANTED = {"nofile": Limit(161, 161)}
OPTIONS = CheckOptions(probe="predict", canary="never")


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stand for a host with enough of everything."""
    host = SimpleNamespace(
        limits={
            "nofile": Rlimit(4096, 4096),
            "memlock": Rlimit(65536, 65536),
            "as": Rlimit(UNLIMITED, UNLIMITED),
        },
        rooms=[Room("the host", 64 * GIB)],
        cpus=[Cpus(2, "affinity")],
        tasks=[TaskRoom(30000, 32768, "kernel.pid_max")],
        shm=GIB,
        quota=None,
        may_lock=False,
        files=1000,
        file_max=2**40,
    )
    monkeypatch.setattr(training_limits, "read_limits", lambda *_asked: host.limits)
    monkeypatch.setattr(Runner, "find_rooms", lambda *_asked: host.rooms)
    monkeypatch.setattr(Runner, "find_cpus", lambda *_asked: host.cpus)
    monkeypatch.setattr(Runner, "find_task_rooms", lambda *_asked: give(host.tasks))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(Runner, "may_lock", property(lambda *_asked: host.may_lock))
    monkeypatch.setattr(training_survey, "read_free", lambda *_asked: host.shm)
    monkeypatch.setattr(training_survey, "read_quota", lambda *_asked: host.quota)
    monkeypatch.setattr(subject, "read_free", lambda *_asked: host.shm)
    monkeypatch.setattr(subject, "find_leftovers", lambda *_asked: [])
    monkeypatch.setattr(subject, "read_kernel_use", lambda: SimpleNamespace(files=host.files))
    monkeypatch.setattr(subject, "read_sysctl", lambda *_asked: str(host.file_max))
    return host


def give(value: Any) -> Any:
    if isinstance(value, OSError):
        raise value
    return value


def check(run: Training = RUN) -> dict[str, Finding]:
    return {
        f"{one.requirement.item} {one.requirement.bound}": one
        for one in subject.check_training(run, OPTIONS, Look())
    }


def statuses(run: Training = RUN) -> dict[str, str]:
    return {name: finding.status for name, finding in check(run).items()}


def test_a_host_with_enough_of_everything_has_no_cause() -> None:
    found = check()
    assert {finding.status for finding in found.values()} == {PASS}
    assert [one.causes for one in found.values() if one.causes] == []
    assert found["workers value"].observation == Observation(
        204,
        "nofile 204 (soft limit 4096), /dev/shm 249 (1.0 GiB free), memory 2771 (64.0 GiB left of"
        " the host), tasks 7499 (30000 left of kernel.pid_max), CPUs 2 (affinity; more of them only wait)",
    )


@pytest.mark.parametrize(
    ("sections", "names"), [(("training",), "training"), (("docker", "podman"), "docker, podman")]
)
def test_a_policy_that_states_nothing_of_what_is_asked_is_refused(
    sections: tuple[str, ...], names: str
) -> None:
    policy = Policy({"sessions": (SessionRule(("root",), WANTED),)})
    with pytest.raises(PolicyError, match=f"policy: states nothing for {names}; a policy that"):
        check_host(policy, OPTIONS._replace(sections=sections))
    assert not check_host(policy, OPTIONS._replace(sections=())).findings


def test_soft_and_hard_are_told_apart(host: SimpleNamespace) -> None:
    host.limits["nofile"] = Rlimit(160, 4096)
    found = check()
    assert (found["nofile soft"].status, found["nofile hard"].status) == (FAIL, PASS)
    (cause,) = found["nofile soft"].causes
    assert cause.code == "run-descriptors"
    assert "ulimit -n 161, or share by name" in cause.remedy.text
    assert [one.code for one in found["workers value"].causes] == ["run-workers"]
    assert found["workers value"].observation.value == 7


def test_too_few_files_for_the_whole_host(
    host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlhost_limits.kernel import diagnose as explain_kernel

    monkeypatch.setattr(explain_kernel, "explain_kernel", lambda findings, *_asked: findings)
    host.file_max = 1100
    finding = check()["fs.file-max value"]
    assert (finding.status, finding.requirement.minimum) == (FAIL, 1161)
    assert [one.code for one in finding.causes] == ["run-file-handles"]


def test_a_full_dev_shm_fails_whatever_anybody_needs(host: SimpleNamespace) -> None:
    """Where batches are not stated nobody counts them; every worker puts its own there."""
    run = RUN._replace(batch_size=None)
    assert "free value" not in check(run)
    host.shm = 4095
    finding = check(run)["free value"]
    (cause,) = finding.causes
    assert (finding.status, finding.requirement.place, cause.code) == (
        FAIL,
        "path:/dev/shm",
        "run-shared-memory",
    )
    assert cause.text == (
        "nothing of /dev/shm is free, and 8 workers put every batch there; it cannot run"
    )
    assert "free value" not in check(run._replace(workers=0))
    assert "free value" not in check(run._replace(checks=("descriptors",)))


def test_shared_memory_that_is_too_small_names_who_decides(host: SimpleNamespace) -> None:
    host.shm = 20 * MIB
    found = check()
    assert found["free value"].status == FAIL
    assert found["free value"].causes[0].code == "run-shared-memory"
    assert found["workers value"].observation.value == 4


def test_leftovers_that_are_in_the_way_are_the_cause(
    host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = subject.find_leftovers("x")
    assert left == []
    files = [SimpleNamespace(path="/dev/shm/torch_1_2_0", size=100 * MIB)]
    monkeypatch.setattr(subject, "find_leftovers", lambda *_asked: files)
    host.shm = 20 * MIB
    causes = check()["free value"].causes
    assert [one.code for one in causes] == ["run-shared-memory-leftovers"]


@pytest.mark.parametrize("is_set", [True, False])
def test_a_quota_bounds_the_shared_memory_of_a_user(host: SimpleNamespace, is_set: bool) -> None:
    host.quota = Quota(24 * MIB, 4 * MIB, is_set)
    found = check()
    free = found["free value"]
    assert (free.status, free.observation.value) == (FAIL, 20 * MIB)
    assert free.observation.how == "what its quota leaves of /dev/shm"
    (cause,) = free.causes
    assert cause.code == "run-shared-memory-quota"
    assert ("from the next login on" in cause.text) is not is_set
    assert found["workers value"].observation.value == 4
    host.quota = Quota(2 * GIB, 0)
    assert check()["free value"].observation.how == "statvfs of /dev/shm"


def test_a_quota_that_cannot_be_read_leaves_the_room_unknown(
    host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_asked: object) -> None:
        raise OSError("cannot be read")

    monkeypatch.setattr(training_survey, "read_quota", refuse)
    assert check()["free value"].status == UNKNOWN


def test_a_cgroup_beats_the_memory_of_the_host(host: SimpleNamespace) -> None:
    host.rooms = [host.rooms[0], Room("/sys/fs/cgroup/x.slice", 300 * MIB, 0, 300 * MIB)]
    found = check()
    assert [one.code for one in found["memory value"].causes] == ["run-memory-cgroup"]
    assert found["workers value"].observation.value == 5


def test_model_states_that_fit_nowhere_are_no_fault_of_the_workers(host: SimpleNamespace) -> None:
    states = DeepSpeed(3, 7 * 10**9, 131 * 10**6, 8, 1, True, True)
    found = check(RUN._replace(deepspeed=states))
    assert found["model_states value"].status == FAIL
    assert found["model_states value"].requirement.minimum == 180245 * MIB
    assert "; beside 499.7 MiB on each GPU" in found["model_states value"].observation.how
    assert found["workers value"].status == PASS


@pytest.mark.parametrize(
    ("item", "run", "code"),
    [
        ("as", Training(workers=1, worker_memory=GIB), "run-address-space"),
        ("data", Training(workers=1, worker_memory=GIB), "run-address-space"),
        ("fsize", Training(output_dir="/nowhere", checkpoint_size=GIB), "run-file-size"),
    ],
)
def test_what_a_process_may_map_and_write_bounds_a_run(
    host: SimpleNamespace, item: str, run: Training, code: str
) -> None:
    free = dict.fromkeys(("as", "data", "fsize"), Rlimit(UNLIMITED, UNLIMITED))
    host.limits.update(free)
    assert check(run)[f"{item} soft"].status == PASS
    host.limits[item] = Rlimit(GIB - 1, GIB - 1)
    found = check(run)[f"{item} soft"]
    assert (found.status, [one.code for one in found.causes]) == (FAIL, [code])


def test_an_address_space_without_a_bound_is_not_told_of(host: SimpleNamespace) -> None:
    run = Training(workers=1, batch_size=GIB)
    assert "as soft" not in check(run)
    host.limits["as"] = Rlimit(GIB, GIB)
    found = check(run)["as soft"]
    assert (found.status, [one.code for one in found.causes]) == (FAIL, ["run-address-space"])
    assert check(run._replace(workers=0))["as soft"].status == PASS


@pytest.mark.parametrize("sharing", ["file_system", "file_descriptor"])
def test_each_tensor_that_is_kept_is_a_mapping(
    monkeypatch: pytest.MonkeyPatch, sharing: str
) -> None:
    """2,000 tensors of 40 batches that were kept died at 65,530 mappings."""
    monkeypatch.setattr(subject, "read_sysctl", lambda *_asked: "65530")
    run = Training(workers=2, tensors_per_batch=2000, hold=40, sharing=sharing)
    found = check(run)["vm.max_map_count value"]
    assert (found.status, found.causes[0].code) == (FAIL, "run-mappings")
    assert check(run._replace(hold=20))["vm.max_map_count value"].status == PASS
    assert "vm.max_map_count value" not in check(run._replace(workers=0))


@pytest.mark.parametrize(
    "run",
    [
        RUN._replace(user="nosuchuser", place="session:nosuchuser@sshd"),
        RUN._replace(place="session:nosuchuser@sshd"),
        RUN._replace(user="nosuchuser"),
    ],
)
def test_of_a_user_whom_the_host_does_not_have_nothing_is_judged(run: Training) -> None:
    found = check(run)
    assert {one.status for one in found.values()} == {UNKNOWN}
    assert found["user value"].observation.reason == "this host has no user nosuchuser"
    assert find_unlooked(found.values())


def test_a_run_of_which_nothing_is_seen_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_asked: object) -> list[Room]:
        raise OSError("its cgroup cannot be seen")

    assert not find_unlooked(check().values())
    monkeypatch.setattr(Runner, "find_rooms", refuse)
    monkeypatch.setattr(Runner, "find_cpus", refuse)
    monkeypatch.setattr(Runner, "find_task_rooms", refuse)
    assert not find_unlooked(check().values())
    assert find_unlooked(check(Training(workers=1)).values())


def test_what_the_kernel_gives_all_is_no_sight_of_a_place_that_is_not_there() -> None:
    run = RUN._replace(place="service:nope.service", checks=("descriptors",))
    found = check(run)
    assert found["fs.file-max value"].status == PASS
    assert find_unlooked(found.values())


def test_a_limit_that_the_kernel_does_not_have_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "read_sysctl", lambda *_asked: None)
    found = check()["vm.max_map_count value"]
    assert (found.status, found.observation.reason) == (UNKNOWN, "there is no vm.max_map_count")


def test_a_capability_exempts_from_memlock(host: SimpleNamespace) -> None:
    run = Training(workers=1, pinned_buffer=GIB)
    assert [one.code for one in check(run)["memlock soft"].causes] == ["run-memlock"]
    host.may_lock = True
    assert check(run)["memlock soft"].observation == Observation(
        "not applied", "it has CAP_IPC_LOCK"
    )


@pytest.mark.parametrize(
    ("workers", "ranks", "status"), [(2, 1, PASS), (3, 1, FAIL), (1, 8, PASS), (2, 2, FAIL)]
)
def test_cpus_count_where_they_are_asked_for(workers: int, ranks: int, status: str) -> None:
    run = Training(needs=("cpus",), workers=workers, ranks_per_node=ranks)
    assert statuses(run)["cpus value"] == status
    assert statuses(run)["workers value"] == status


def test_what_is_not_checked_bounds_nothing(host: SimpleNamespace) -> None:
    host.rooms = [Room("the host", MIB)]
    found = check(RUN._replace(checks=("shared_memory",)))
    assert {name: one.status for name, one in found.items()} == {
        "free value": PASS,
        "workers value": PASS,
    }


def test_no_worker_has_no_largest_number() -> None:
    assert "workers value" not in statuses(Training(workers=0))


def test_what_is_unknown_stays_unknown(
    host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_words: object) -> None:
        raise OSError("it cannot be seen")

    monkeypatch.setattr(Runner, "find_rooms", fail)
    monkeypatch.setattr(Runner, "find_cpus", fail)
    monkeypatch.setattr(training_survey, "read_free", fail)
    monkeypatch.setattr(subject, "read_kernel_use", fail)
    found = check(RUN._replace(needs=("cpus",)))
    unknown = {name: one.observation.reason for name, one in found.items() if one.status == UNKNOWN}
    assert unknown == {
        "fs.file-max value": "it cannot be seen",
        "free value": "it cannot be seen",
        "memory value": "it cannot be seen",
        "cpus value": "it cannot be seen",
        "workers value": "how many workers /dev/shm, memory would allow is not known",
    }


@pytest.mark.parametrize("value", [None, 64 * MIB, GIB])
def test_a_new_container_has_the_size_that_docker_gives(
    value: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, object] = {}

    def judge_runner(runner: Runner, limits: object, shm: int, *_others: object) -> list[Finding]:
        asked.update(place=runner.place, shm=shm)
        wanted = subject.Requirement(runner.place, "shm_size", "value", shm, unit="bytes")
        nofile = judge_limits(runner.place, limits, {"nofile": Rlimit(UNLIMITED, UNLIMITED)}, "")
        return [*nofile, subject.judge(wanted, Observation(value, "canary", "no image"))]

    monkeypatch.setattr(training_survey, "judge_runner", judge_runner)
    run = Training(
        workers=8, tensors_per_batch=1, batch_size=8 * MIB - 4096, place="new-container:docker"
    )
    finding = check(run)["shm_size value"]
    assert asked == {"place": "new-container:docker", "shm": 19 * 8 * MIB + 2 * (8 + 3 * 8) * 4096}
    expected = {None: UNKNOWN, 64 * MIB: FAIL, GIB: PASS}[value]
    assert finding.status == expected
    assert [one.code for one in finding.causes] == ["run-shared-memory"] * (expected == FAIL)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("service:train.service", "service:train.service is not running"),
        ("container:docker/x", "container:docker/x is not running"),
        ("job:slurm", "what a job gets is not known before it runs; check in the job itself"),
    ],
)
def test_a_process_that_is_not_there_is_unknown(
    place: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(training_runner, "read_containers", lambda *_asked: [])
    runner = Runner(place, Look())
    with pytest.raises(OSError, match=reason):
        runner.find_rooms()
    with pytest.raises(OSError, match=reason):
        runner.find_cpus(1)


def test_this_very_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "3")
    runner = Runner("self", Look())
    assert runner.label == "process:self"
    assert runner.find_rooms()[-1].where == "the host"
    assert Cpus(6, "SLURM_CPUS_PER_TASK=3") in runner.find_cpus(2)
    assert runner.find_shm() == "/dev/shm"


@pytest.mark.parametrize("told", ["", "-1", "x", "9" * 7, "\u0664"])
def test_what_is_no_number_of_cpus_is_not_slurm_s(
    told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", told)
    assert not [one for one in Runner("self", Look()).find_cpus(2) if "SLURM" in one.why]


@pytest.mark.parametrize(
    ("uid", "mapped", "is_free"),
    [
        (0, "         0          0 4294967295\n", True),
        (0, "         0     100000      65536\n", False),
        (1000, "         0          0 4294967295\n", False),
        (0, None, False),
    ],
)
def test_nproc_does_not_bind_root_of_the_host_alone(
    uid: int, mapped: str | None, is_free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(training_runner, "read_process", lambda _pid: SimpleNamespace(uid=uid))
    monkeypatch.setattr(training_runner, "read_text", lambda _path: mapped)
    assert Runner("self", Look()).is_nproc_free is is_free


def test_a_session_has_the_cgroup_of_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    runner = Runner("session:root@sshd", Look())
    assert runner.may_lock
    assert {row.split(":", 2)[2] for row in runner.cgroup.splitlines()} == {
        "/user.slice/user-0.slice"
    }
    assert not Runner("session:nobody@sshd", Look()).may_lock
    assert Runner("session:ghost@su", Look()).cgroup.endswith(":/user.slice")


def test_a_user_who_is_not_logged_in_will_have_the_bounds_of_the_slice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    user = User("alice", 54321, 54321, frozenset(), frozenset())
    monkeypatch.setattr(training_runner, "read_user", lambda _name: user)
    monkeypatch.setattr(training_runner, "show_bounds", lambda unit: Bounds(len(unit), 0.5))
    runner = Runner("session:alice@sshd", Look())
    assert next(room[:4] for room in runner.find_rooms()) == ("user-54321.slice", 16, 0, 16)
    assert Cpus(0.5, "quota of user-54321.slice") in runner.find_cpus(1)
    monkeypatch.setattr(training_runner, "show_bounds", lambda _unit: Bounds(None, None))
    runner = Runner("session:alice@sshd", Look())
    assert "user-54321.slice" not in {room.where for room in runner.find_rooms()}
    monkeypatch.setattr(training_runner.os.path, "isdir", lambda _path: True)
    monkeypatch.setattr(training_runner, "show_bounds", lambda _unit: Bounds(1, 1))
    runner = Runner("session:alice@sshd", Look())
    assert "user-54321.slice" not in {room.where for room in runner.find_rooms()}


def test_a_container_is_found_by_its_name_or_by_what_its_id_begins_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = SimpleNamespace(name="web", id="ab12cd", pid=4711)
    monkeypatch.setattr(training_runner, "read_containers", lambda *_asked: [one])
    for name in ("web", "ab12"):
        runner = Runner(f"container:docker/{name}", Look())
        assert (runner.label, runner.pid) == ("container:docker/web", 4711)
        assert runner.find_shm() == "/proc/4711/root/dev/shm"


PASSED = Finding(PASS, Requirement("x", "nofile", "soft"), Observation(7, ""))


@pytest.mark.parametrize(
    ("place", "module", "name", "asked"),
    [
        (
            "session:alice@su",
            "sessions.check",
            "check_sessions",
            [(SessionRule(("alice",), WANTED),), ["alice"], ["su"], "predict"],
        ),
        (
            "service:train.service",
            "services.check",
            "check_services",
            [ServicesPolicy(units={"train.service": UnitRule(WANTED)}), "never"],
        ),
        ("job:slurm", "slurm.check", "check_slurm", [SlurmPolicy(WANTED), None, False, "predict"]),
        (
            "new-container:docker",
            "docker.check",
            "check_docker",
            [ContainerPolicy(WANTED, 4096), "never"],
        ),
    ],
)
def test_who_knows_a_place_is_asked(
    place: str, module: str, name: str, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    words: list[object] = []

    def answer(*given: object) -> list[Finding]:
        words.extend(given)
        return [PASSED._replace(requirement=PASSED.requirement._replace(place=place))]

    monkeypatch.setattr(importlib.import_module(f"mlhost_limits.{module}"), name, answer)
    look = Look()
    found = training_limits.judge_runner(Runner(place, look), WANTED, 4096, OPTIONS, look)
    assert [one.status for one in found] == [PASS]
    assert [one for one in asked if one not in words] == []


def test_a_container_that_is_gone_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_runner, "read_containers", lambda _address: [])
    look = Look()
    runner = Runner("container:docker/x", look)
    found = training_limits.judge_runner(runner, WANTED, None, OPTIONS, look)
    assert {(one.status, one.observation.reason) for one in found} == {
        (UNKNOWN, "container:docker/x is not running")
    }


@pytest.mark.parametrize(
    ("uid", "sharing", "asks"),
    [(1000, "file_system", True), (1000, "file_descriptor", False), (999, "file_system", False)],
)
def test_named_files_are_lost_at_the_last_logout(
    uid: int, sharing: str, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = User("alice", uid, uid, frozenset(), frozenset())
    monkeypatch.setattr(training_runner, "read_user", lambda _name: user)
    monkeypatch.setattr(check_logind, "check_logind", lambda *_asked: PASSED)
    monkeypatch.setattr(training_survey, "judge_runner", lambda *_asked: [])
    run = RUN._replace(place="session:alice@sshd", sharing=sharing)
    found = list(subject.check_training(run, OPTIONS, Look()))
    assert (PASSED in found) == asks


@pytest.mark.parametrize("probe", ["quiet", "predict"])
def test_a_process_that_falls_short_is_explained_where_probes_may_look(
    probe: str, host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlhost_limits.processes import diagnose as explain_processes

    asked: list[int] = []

    def explain(seen: Seen, _world: object) -> list[Finding]:
        asked.append(1)
        return list(seen.findings)

    monkeypatch.setattr(explain_processes, "explain_process", explain)
    host.limits["nofile"] = Rlimit(7, 7)
    options = OPTIONS._replace(probe=probe)
    found = list(subject.check_training(RUN, options, Look()))
    assert [one.status for one in found[:2]] == [FAIL, FAIL]
    assert asked == [1] * (probe == "quiet")


@pytest.mark.parametrize(
    ("run", "module", "name"),
    [
        (Training(cache_dir="/c", checks=("cache",)), "training.cache_check", "check_cache"),
        (Training(cache_dir="/c", checks=("cache_integrity",)), "training.files_check", "check_cache_files"),
        (Training(output_dir="/o"), "training.output_check", "check_output"),
        (Training(packages={"trl": ""}, python="/p"), "training.packages_check", "check_packages"),
        (Training(gpus=Gpus(2)), "training.gpus_check", "check_gpus"),
    ],
)  # fmt: skip
def test_what_a_run_names_is_looked_at(
    run: Training, module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def answer(given: object, *_others: object) -> list[Finding]:
        asked.append(given)
        return [PASSED]

    monkeypatch.setattr(importlib.import_module(f"mlhost_limits.{module}"), name, answer)
    assert list(subject.check_training(run, OPTIONS, Look())) == [PASSED]
    assert asked == [run]


@pytest.mark.parametrize(("memory", "least"), [(None, 4 * GIB), (GIB, 4 * GIB), (9 * GIB, 9 * GIB)])
def test_a_gpu_holds_the_model_states_at_least(
    memory: int | None, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlhost_limits.training import gpus_check as check_gpus

    asked: list[Training] = []

    def answer(run: Training) -> list[Finding]:
        asked.append(run)
        return [PASSED]

    monkeypatch.setattr(check_gpus, "check_gpus", answer)
    states = DeepSpeed(3, 2 * GIB, GIB, 1, 1, True, True)
    run = Training(gpus=Gpus(2, memory), deepspeed=states, checks=("gpus",))
    assert list(subject.check_training(run, OPTIONS, Look())) == [PASSED]
    assert [one.gpus for one in asked] == [Gpus(2, least)]


def test_every_check_is_made_by_somebody() -> None:
    assert set(subject._LOOKS) == set(NEEDS)


@pytest.mark.parametrize(
    ("told", "threads"),
    [("", 2), ("3", 3), (" 4,2", 4), ("0", 2), ("many", 2), ("\u00b2", 2), (str(10**30), 2)],
)
def test_the_threads_of_a_process_are_those_of_openmp(
    monkeypatch: pytest.MonkeyPatch, told: str, threads: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert training_survey.Survey(RUN, OPTIONS, Look()).threads == threads


@pytest.mark.parametrize(
    ("place", "stated", "returns"),
    [("self", "131072", True), ("self", "", None), ("new-session", "131072", None)],
)
def test_whether_memory_is_given_back_is_known_of_this_process_alone(
    monkeypatch: pytest.MonkeyPatch, place: str, stated: str, returns: bool | None
) -> None:
    """A session that is opened anew has variables of its own."""
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", stated)
    run = RUN._replace(place=place, user="root")
    assert training_survey.Survey(run, OPTIONS, Look()).run.returns_memory is returns


def test_a_host_that_shows_no_bound_of_tasks_is_unknown(host: SimpleNamespace) -> None:
    host.tasks = OSError("what bounds the tasks of this host cannot be read")
    found = check()["tasks value"]
    assert (found.status, found.observation.reason) == (UNKNOWN, str(host.tasks))


def test_bounds_that_nobody_knows_are_named(
    host: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside those that are known; a number of the run that is not stated is one."""

    def hide(*_asked: object) -> None:
        raise OSError("the limits of its cgroup cannot be read from here")

    monkeypatch.setattr(Runner, "find_rooms", hide)
    host.tasks = OSError("/proc/loadavg does not hold that number")
    seen = check(RUN._replace(batch_size=None))["workers value"]
    assert (seen.status, seen.observation.value) == (UNKNOWN, None)
    assert seen.observation.how == (
        "nofile 204 (soft limit 4096), CPUs 2 (affinity; more of them only wait); not known:"
        " memory (the limits of its cgroup cannot be read from here), tasks (/proc/loadavg does"
        " not hold that number), /dev/shm (batch_size is not stated)"
    )
    told = seen.observation.reason
    assert told == "how many workers memory, tasks would allow is not known"
    alone = check(RUN._replace(batch_size=None, checks=("descriptors",)))["workers value"]
    assert "not known" not in alone.observation.how


@pytest.mark.parametrize("text", ["", "MemTotal: 5 kB\n", "MemAvailable: lots\n"])
def test_memory_that_the_host_does_not_tell_is_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    monkeypatch.undo()
    (tmp_path / "meminfo").write_text(text)
    monkeypatch.setattr(
        training_runner, "read_memory_size", lambda name: read_memory_size(name, str(tmp_path))
    )
    found = check(Training(workers=1, checks=("memory",)))["memory value"]
    assert found.status == UNKNOWN
    assert found.observation.reason == f"{tmp_path}/meminfo does not say MemAvailable"
