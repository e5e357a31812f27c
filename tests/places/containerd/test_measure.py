# SPDX-License-Identifier: GPL-3.0-or-later
"""What containers inherit from containerd: its unit's drop-in, its base specification, its causes."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from mlhost_limits.containerd import measure as containerd_measure
from mlhost_limits.containerd import provision as containerd_provision
from mlhost_limits.containerd.base_spec import BaseSpec, find_base_spec
from mlhost_limits.containerd.causes import (
    blame_base,
    blame_base_tasks,
    find_task_causes,
    find_tasks_causes,
    is_of_kubelet,
)
from mlhost_limits.containerd.measure import describe_absence, find_containerd
from mlhost_limits.containerd.plan import FOLDER, OURS, plan_containerd
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.containers.process import blame_container
from mlhost_limits.containers.spec import Started, read_spec
from mlhost_limits.containers.tasks import split_levels
from mlhost_limits.core.cause import Cause, Remedy
from mlhost_limits.core.finding import Observation, Requirement, judge
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.process_owner import MAKER
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Declaration, Rlimit
from mlhost_limits.host.look import Process
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.tasks import Level
from mlhost_limits.systemd.unit_file import Source
from mlhost_limits.write import systemctl

POLICY = ContainerPolicy(
    {"nofile": Limit(65536, 1048576), "memlock": Limit(UNLIMITED, UNLIMITED), "core": Limit(max=0)}
)
MAIN = Source("/lib/systemd/system/containerd.service", "[Service]\nLimitNOFILE=infinity\n")
TEXT = """\
# Managed by mlhost.limits: changes made here are overwritten.
[Service]
LimitMEMLOCK=infinity
LimitNOFILE=65536:1048576
"""
LATER = f"{FOLDER}/95-site.conf"


def plan(*dropins: Source, main: Source | None = MAIN, **options: bool) -> SectionPlan:
    return plan_containerd(POLICY, Files(main, dropins), 1048576, **options)


def written(done: SectionPlan) -> dict[str, str | None]:
    return {one.path: None if one.after is None else one.after.decode() for one in done.edits}


def test_our_drop_in_states_what_is_asked_and_nothing_else() -> None:
    done = plan()
    assert written(done) == {OURS: TEXT}
    assert (done.shortfalls, done.notes) == ((), ())
    assert plan(Source(OURS, TEXT)).edits == ()
    assert written(plan(Source(OURS, TEXT), absent=True)) == {OURS: None}
    assert plan(main=None).notes == (f"{OURS}: takes effect once containerd is installed",)


def test_a_later_drop_in_is_reported_and_silenced_where_asked() -> None:
    site = Source(LATER, "[Service]\nLimitNOFILE=1024\nLimitMEMLOCK=infinity\n")
    done = plan(site)
    assert [str(one) for one in done.shortfalls] == [
        f'{LATER}:2 "LimitNOFILE=1024" beats our "LimitNOFILE=65536:1048576"'
    ]
    assert written(done) == {OURS: TEXT}
    silenced = plan(site, override=True)
    assert silenced.shortfalls[0].neutralized
    text = written(silenced)[LATER]
    assert text == "[Service]\n#mlhost.limits# LimitNOFILE=1024\nLimitMEMLOCK=infinity\n"
    assert written(plan(Source(LATER, text), Source(OURS, TEXT), absent=True))[LATER] == site.text


def test_a_drop_in_of_another_folder_is_left() -> None:
    path = "/etc/systemd/system.control/containerd.service.d/50-LimitNOFILE.conf"
    vendor = Source("/usr/lib/systemd/system/service.d/10-all.conf", "[Service]\nLimitCORE=0\n")
    later = Source(
        "/run/systemd/system/containerd.service.d/99-run.conf", "[Service]\nLimitNOFILE=9\n"
    )
    done = plan(Source(path, "[Service]\nLimitCORE=1\n"), later, vendor, override=True)
    assert [one.neutralized for one in done.shortfalls] == [False]
    assert written(done) == {OURS: TEXT}


def test_a_specification_that_is_no_json_by_now_beats_it_without_a_line() -> None:
    done = plan_containerd(POLICY, Files(MAIN), 1048576, base=BASE._replace(text=""))
    assert [str(one) for one in done.shortfalls] == [
        f'{B} "nofile 1024:4096" beats our "LimitNOFILE=65536:1048576"',
        f'{B} "memlock 64KiB:64KiB" beats our "LimitMEMLOCK=infinity"',
    ]


def test_what_systemd_would_cut_is_refused() -> None:
    done = plan_containerd(POLICY, Files(MAIN), 65536)
    assert done.problems == (
        "containers.containerd.limits.nofile: 1048576 is above fs.nr_open 65536,"
        " to which systemd would cut it",
    )


CRI = '[plugins."io.containerd.grpc.v1.cri".containerd'


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("version = 2\n", None),
        (f'{CRI}.runtimes.runc]\nbase_runtime_spec = "/etc/b.json"\n', "/etc/b.json"),
        (f'{CRI}.runtimes.runc]\nbase_runtime_spec = ""\n', None),
        (f'{CRI}.runtimes.kata]\nbase_runtime_spec = "/etc/b.json"\n', None),
        (f'{CRI}]\ndefault_runtime_name = "kata"\n{CRI}.runtimes.kata]\nbase_runtime_spec = "/k"\n', "/k"),
    ],
)  # fmt: skip
def test_the_base_specification_is_that_of_the_default_runtime(text: str, path: str | None) -> None:
    found = find_base_spec(text)
    assert (found.value if found else None) == path


def test_the_limits_of_a_specification() -> None:
    text = '{"process": {"rlimits": [{"type": "RLIMIT_NOFILE", "soft": 1024, "hard": 4096}, {"type": "X"}]}}'
    assert read_spec(text) == ({"nofile": Rlimit(1024, 4096)}, None)
    pids = '{"process": {}, "linux": {"resources": {"pids": {"limit": %s}}}}'
    assert read_spec('{"process": {}, "linux": {"resources": null}}') == ({}, None)
    assert [read_spec(pids % limit)[1] for limit in ("7", "0", "-1")] == [7, UNLIMITED, UNLIMITED]
    for broken in ("[]", "{}", "{", pids % '"x"', '{"process": {}, "linux": 7}'):
        with pytest.raises(ValueError, match=r"specification|Expecting|invalid literal"):
            read_spec(broken)


WANTED = Requirement("container:containerd/default/web", "nofile", "soft", 65536)
AT = Declaration("/etc/containerd/config.toml", 3, 'base_runtime_spec = "/b"', "/b")


def test_a_base_specification_is_blamed_for_what_it_states() -> None:
    low = blame_base(WANTED, BaseSpec("/b", {"nofile": Rlimit(1024, 4096)}, AT))
    assert low
    assert (low.code, low.at) == ("containerd-base-spec", AT)
    assert blame_base(WANTED, BaseSpec("/b", {"nofile": Rlimit(65536, 65536)}, AT)) is None
    assert blame_base(WANTED._replace(bound="hard"), BaseSpec("/b", {}, AT)) is None
    assert blame_base(WANTED, None) is None


NEW = Cause("unit-not-stated", "nobody states it", Remedy("state it"))


@pytest.mark.parametrize(
    ("spec", "has", "new", "fresh", "codes"),
    [
        ({"nofile": Rlimit(1024, 1024)}, 1024, [], 65536, ["containerd-own-spec"]),
        ({"nofile": Rlimit(4096, 4096)}, 1024, [], 65536, ["containerd-changed-inside"]),
        ({}, 1024, [NEW], 1024, ["unit-not-stated", "containerd-container-older"]),
        (None, 1024, [], 65536, ["containerd-container-older"]),
        ({}, 1024, [], 1024, []),
        ({}, 1024, [], None, []),
    ],
)
def test_why_a_running_container_has_too_little(
    spec: dict[str, Rlimit] | None, has: int, new: list[Cause], fresh: int | None, codes: list[str]
) -> None:
    task = Started("default/web", spec, "2026-01-01T00:00:00")
    assert [one.code for one in find_task_causes(WANTED, has, task, new, fresh)] == codes


def test_a_pods_specification_is_no_choice_of_its_own() -> None:
    task = Started("pod", {"nofile": Rlimit(1024, 1024)}, in_pod=True)
    (cause,) = find_task_causes(WANTED, 1024, task, [], 65536)
    assert cause.code == "containerd-container-older"


def test_a_process_in_a_container_is_its_engines() -> None:
    low, enough = (judge(WANTED, Observation(value, "")) for value in (9, 65536))
    blamed = blame_container(low, "podman/web")
    assert ([one.code for one in blamed.causes], blamed.owner) == (["process-in-container"], MAKER)
    assert blame_container(enough, "podman/web") == enough


TASKS = Requirement("container:containerd/default/web", "tasks", "value", 500)
POD = "kubepods-besteffort-pod01234567_0123_0123_0123_0123456789ab.slice"
KUBELET = "/sys/kubepods.slice/kubepods-besteffort.slice"
ID = 64 * "a"
FEW = BaseSpec("/b", {}, AT, 100)


def test_a_base_specification_is_blamed_for_tasks() -> None:
    (cause,) = blame_base_tasks(TASKS, FEW)
    assert (cause.code, cause.at) == ("containerd-base-spec", AT)
    assert "make linux.resources.pids.limit of /b 500 (-1 is unlimited)" in cause.remedy.text
    for base in (None, FEW._replace(tasks=None), FEW._replace(tasks=500)):
        assert blame_base_tasks(TASKS, base) == []


@pytest.mark.parametrize(
    ("task", "levels", "codes"),
    [
        (Started("web", {}, tasks=100), [Level("web", "/w", 100)], ["containerd-own-spec"]),
        (Started("web", {}, in_pod=True, tasks=100), [Level("web", "/w", 100)],
         ["containerd-base-spec", "containerd-container-older"]),
        (Started("web", {}, tasks=900), [Level("web", "/w", 100)], ["containerd-changed-inside"]),
        (Started("web", {}), [Level("web", "/w", 100)], ["containerd-changed-inside"]),
        (Started("web", {}, tasks=900), [Level("web", "/w", 900)], []),
        (Started("web", None), [Level("web", "/w", 100)], []),
        (Started("web", {}), [Level(f"nerdctl-{ID}.scope", "/w", 100)], []),
        (Started("web", {}), [Level("web", "/w", 900), Level(POD, f"{KUBELET}/{POD}", 100),
                           Level("kubepods.slice", "/sys/kubepods.slice", 400)], ["containerd-pod-pids"]),
        (Started("web", {}), [Level("web", "/w", 900), Level("kubepods.slice", "/sys/kubepods.slice", 400)],
         ["containerd-pod-pids"]),
        (Started("web", {}), [Level("web", "/w", 900), Level("podabc", "/sys/kubepods/podabc", 9)],
         ["containerd-pod-pids"]),
    ],
)  # fmt: skip
def test_tasks_of_a_running_container(task: Started, levels: list[Level], codes: list[str]) -> None:
    bounds = split_levels(levels, "web" if levels[0].unit == "web" else ID)
    causes = find_tasks_causes(TASKS, bounds, task, blame_base_tasks(TASKS, FEW))
    assert [one.code for one in causes] == codes
    if codes == ["containerd-pod-pids"]:
        key = "podPidsLimit" if "pod" in levels[1].unit.replace("kubepods", "") else "kubeReserved"
        assert key in causes[0].remedy.text


def test_which_cgroups_are_the_kubelet_s() -> None:
    assert is_of_kubelet(Level(POD, f"{KUBELET}/{POD}/pids.max", 1))
    assert not is_of_kubelet(Level("system.slice", "/sys/system.slice/pids.max", 1))


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ("snap.k8s.containerd.service", "ask for snap.k8s.containerd.service below services.units"),
        ("docker.service", "no containerd of containerd.service is running on this host"),
    ],
)
def test_a_containerd_of_a_snap_is_told_from_none(unit: str, told: str) -> None:
    running = Process(7, "containerd", 0, f"0::/system.slice/{unit}", 1)
    assert told in describe_absence([running])


SPEC = """\
{
  "process": {
    "rlimits": [
      {"type": "RLIMIT_NOFILE", "soft": 1, "hard": 1},
      {
        "type": "RLIMIT_NOFILE",
        "hard": 4096,
        "soft": 1024
      }, {"type": "RLIMIT_MEMLOCK", "soft": 65536, "hard": 65536}
    ]
  },
  "linux": {"resources": {"pids": {"limit": 100}}}
}
"""
B = "/etc/containerd/pods.json"
LOW = {"nofile": Rlimit(1024, 4096), "memlock": Rlimit(65536, 65536)}
BASE = BaseSpec(B, LOW, AT, 100, SPEC)
MOST = str(UNLIMITED)
MENDED = (
    SPEC.replace("1024", "65536").replace("4096", "1048576")
    .replace('"soft": 65536, "hard": 65536', f'"soft": {MOST}, "hard": {MOST}')
)  # fmt: skip


def write(tmp_path: Path, text: str, commands: Sequence[Sequence[str]]) -> str:
    """Return what commands make of a specification, pasted into a shell."""
    file = tmp_path / "etc/containerd/pods.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    for words in commands:
        if words[0] != "systemctl":
            script = words[-1].replace("/etc/", f"{tmp_path}/etc/")
            subprocess.run(["/bin/sh", "-c", script], check=True)
    return file.read_text()


def test_a_remedy_writes_a_base_specification_each_line_once(tmp_path: Path) -> None:
    text = SPEC
    for bound in ("soft", "hard"):
        for item in ("nofile", "memlock"):
            wanted = Requirement("p", item, bound, POLICY.limits[item].soft)
            cause = blame_base(wanted, BASE, POLICY.limits[item])
            assert cause
            assert cause.remedy.commands[-1] == ("systemctl", "restart", "containerd.service")
            if bound == "soft":
                text = write(tmp_path, text, cause.remedy.commands)
    (cause,) = blame_base_tasks(TASKS, BASE)
    text = write(tmp_path, text, cause.remedy.commands)
    assert text == MENDED.replace('"limit": 100', '"limit": 500')


@pytest.mark.parametrize(
    "text",
    [
        SPEC,
        SPEC.replace('"hard": 4096,', ""),
        SPEC.replace("1024", "1e3"),
        "",
        "[]",
    ],
)
def test_what_cannot_be_edited_is_left_to_a_person(text: str) -> None:
    path = "/srv/pods.json" if text == SPEC else B
    cause = blame_base(WANTED, BASE._replace(text=text, path=path), POLICY.limits["nofile"])
    assert cause
    assert cause.remedy.commands == ()


def test_a_base_specification_beats_our_drop_in() -> None:
    done = plan_containerd(POLICY, Files(MAIN), 1048576, base=BASE)
    assert [str(one) for one in done.shortfalls] == [
        f'{B}:7 "nofile 1024:4096" beats our "LimitNOFILE=65536:1048576"',
        f'{B}:9 "memlock 64KiB:64KiB" beats our "LimitMEMLOCK=infinity"',
    ]
    assert written(done) == {OURS: TEXT}


def test_override_writes_it_and_puts_it_back() -> None:
    def again(drop_in: str, text: str, **options: bool) -> dict[str, str | None]:
        limits = read_spec(text).limits
        files = Files(MAIN, (Source(OURS, drop_in),) if drop_in else ())
        base = BASE._replace(text=text, limits=limits)
        return written(plan_containerd(POLICY, files, 1048576, base=base, **options))

    done = again("", SPEC, override=True)
    assert done[B] == MENDED
    ours = done[OURS]
    assert ours
    assert again(ours, MENDED, override=True) == {}
    assert again(ours, MENDED) == {B: SPEC, OURS: TEXT}
    assert again(ours, MENDED, absent=True) == {B: SPEC, OURS: None}
    since = MENDED.replace("1048576", "1048575")  # Somebody's own, by now.
    assert again(ours, since, absent=True)[OURS] is None
    assert again(ours, since, absent=True)[B] == since.replace(MOST, "65536")


def test_a_specification_that_is_not_named_any_more_is_told() -> None:
    drop_in = f"{TEXT}# It was, it is, in which file: nofile 1:2 3:4 /etc/old.json\n"
    files = Files(MAIN, (Source(OURS, drop_in),))
    assert plan_containerd(POLICY, files, 1048576, base=BASE).edits == ()
    gone = plan_containerd(POLICY, files, 1048576, absent=True)
    assert gone.notes == ("/etc/old.json has nofile of ours: it had 1:2",)


@pytest.mark.parametrize(
    ("comm", "uid", "cgroup", "is_found"),
    [
        ("containerd", 0, "0::/system.slice/containerd.service", True),
        ("containerd", 1000, "0::/system.slice/containerd.service", False),
        ("bash", 0, "0::/system.slice/containerd.service", False),
        ("containerd", 0, "0::/system.slice/docker.service", False),
    ],
)
def test_containerd_is_root_s_and_in_its_unit(
    monkeypatch: pytest.MonkeyPatch, comm: str, uid: int, cgroup: str, is_found: bool
) -> None:
    monkeypatch.setattr(containerd_measure, "is_daemon", lambda *_asked: True)
    process = Process(7, comm, uid, cgroup, 1)
    assert find_containerd([process]) == (process if is_found else None)


@pytest.mark.parametrize(
    ("edited", "restart", "is_booted", "done"),
    [
        (True, True, True, "restart"),
        (False, True, True, "restart"),
        (True, False, True, "reload"),
        (True, False, False, ""),
        (False, False, True, ""),
    ],
)
def test_an_edit_is_read_at_once_and_a_restart_only_where_it_is_allowed(
    monkeypatch: pytest.MonkeyPatch, edited: bool, restart: bool, is_booted: bool, done: str
) -> None:
    monkeypatch.setattr(containerd_provision, "is_booted", lambda: is_booted)
    monkeypatch.setattr(systemctl, "restart_unit", lambda _unit: "restart")
    monkeypatch.setattr(systemctl, "reload_units", lambda: "reload")
    settle = containerd_provision._find_settle(edited, restart)
    assert (settle() if settle else "") == done
