# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is promised of a Podman that does not do what its files say."""

from __future__ import annotations

import os

import pytest
from mlhost_limits.containers.cgroup import Container
from mlhost_limits.containers.findings import Canary, ContainerLimits
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.containers.read import RunningContainer
from mlhost_limits.containers.spec import Started
from mlhost_limits.core.finding import Finding, Observation, Requirement, judge
from mlhost_limits.core.process_owner import MAKER
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.host.look import Look, read_process
from mlhost_limits.kernel.host_read import KernelRead
from mlhost_limits.podman import check as check_podman
from mlhost_limits.podman import diagnose as explain_podman
from mlhost_limits.podman import explain as trace_podman
from mlhost_limits.podman.causes import PodmanFacts
from mlhost_limits.podman.containers_conf import read_conf
from mlhost_limits.podman.running import Made
from mlhost_limits.services import diagnose as services
from mlhost_limits.services import explain as trace_services
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.tasks import Level
from mlhost_limits.systemd.unit_file import Source

from tests.worlds.distributions import DEBIAN

SIZE = 2**30
WANTED = Requirement("new-container:podman", "shm_size", "value", SIZE, unit="bytes")
CONF = "/etc/containers/containers.conf.d/90-mlhost.conf"


@pytest.mark.parametrize(
    ("stated", "codes", "after_boot"),
    [(SIZE, [], "unknown"), (SIZE // 2, ["podman-conf-line"], "fail")],
)
def test_what_a_boot_gives_is_unknown_where_files_do_not_count(
    stated: int, codes: list[str], after_boot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain_podman, "find_nr_open_at_boot", lambda _look: 1048576)
    text = f'[containers]\nshm_size = "{stated}"\n'
    facts = PodmanFacts((read_conf(CONF, text),), 1048576)
    seen = judge(WANTED, Observation(65536000, "canary container"))
    (told,) = explain_podman.explain_podman([seen], ContainerPolicy({}, SIZE), facts, Look())
    assert [cause.code for cause in told.causes] == codes
    assert told.outlook.after_boot == after_boot


ID = 64 * "a"
OWN = Level(f"libpod-{ID}.scope", "/sys/own/pids.max", 2048)
SLICE = Level("machine.slice", "/sys/machine.slice/pids.max", UNLIMITED)
TASKS = Requirement("new-container:podman", "tasks", "value", 500)
ASKED = ContainerPolicy({}, tasks=500)
FEW = "[containers]\npids_limit = 100\n"
FEW_OF_ALL = Files(
    None,
    (Source("/etc/systemd/system/machine.slice.d/a.conf", "[Slice]\nTasksMax=90\n"),),
    vendor=DEBIAN,
)


@pytest.fixture
def units(monkeypatch: pytest.MonkeyPatch) -> dict[str, Files]:
    """Return the files of units, to which a test adds, on a host that holds 10000 tasks."""
    found: dict[str, Files] = {}
    for module in (services, trace_services):
        monkeypatch.setattr(module, "read_most_tasks", lambda: 10000)
    monkeypatch.setattr(
        services, "read_sources", lambda unit: found.get(unit, Files(None, vendor=DEBIAN))
    )
    monkeypatch.setattr(
        services,
        "read_user_sources",
        lambda unit, uid: found.get(f"{unit} of {uid}", Files(None, vendor=DEBIAN)),
    )
    monkeypatch.setattr(services, "name_user", str)
    return found


def see(*levels: Level, place: str = TASKS.place) -> Finding:
    lowest = min(levels, key=lambda level: level.most)
    return judge(TASKS._replace(place=place), Observation(lowest.most, lowest.path))


def facts(text: str = "") -> PodmanFacts:
    return PodmanFacts((read_conf(CONF, text),), 1048576)


@pytest.mark.parametrize(
    ("text", "own", "above", "codes", "later"),
    [
        ("", 2048, UNLIMITED, [], "pass"),
        (FEW, 100, UNLIMITED, ["podman-conf-line"], "fail"),
        (FEW.replace("100", "0"), 100, UNLIMITED, ["tasks-not-in-force"], "pass"),
        ("", 2048, 90, ["tasks-not-in-force"], "pass"),
    ],
)
def test_tasks_of_a_new_container_are_its_files_and_the_units_above(
    units: dict[str, Files], text: str, own: int, above: int, codes: list[str], later: str
) -> None:
    levels = [OWN._replace(most=own), SLICE._replace(most=above)]
    told = explain_podman.explain_podman([see(*levels)], ASKED, facts(text), Look(), levels)
    ((found),) = list(told)
    assert [cause.code for cause in found.causes] == codes
    assert found.outlook[1:] == (later, later)
    if not codes:
        units["machine.slice"] = FEW_OF_ALL
        (found,) = explain_podman.explain_podman([see(*levels)], ASKED, facts(text), Look(), levels)
        assert ([cause.code for cause in found.causes], found.fails_later) == (
            ["tasks-slice-too-low"],
            True,
        )


MANAGER = [Level("user.slice", "/u", UNLIMITED), Level("user@1000.service", "/m", 900)]


@pytest.mark.parametrize(
    ("created", "levels", "codes", "owner"),
    [
        (Started("web", {}, "", 100), [OWN._replace(most=100), SLICE], ["podman-container-created"], MAKER),
        (Started("web", {}, "", 100), [OWN._replace(most=100), SLICE._replace(most=90)],
         ["podman-container-created", "tasks-not-in-force"], ""),
        (Started("web", {}), [OWN._replace(most=100), SLICE], ["tasks-not-in-force"], ""),
        (Started("web"), [OWN._replace(most=100), SLICE], ["podman-container-created"], MAKER),
        (Started("web", {}, "", 100), [OWN._replace(most=100), *MANAGER], ["podman-container-created"], "1000"),
        (Started("web", {}, "", 100), [OWN._replace(most=100)], ["podman-container-created"], "bob"),
        (Started("web", {}, "", 900), [OWN, *MANAGER, SLICE._replace(most=90)], ["tasks-not-in-force"], ""),
    ],
)  # fmt: skip
def test_tasks_of_a_running_container(
    units: dict[str, Files], created: Started, levels: list[Level], codes: list[str], owner: str
) -> None:
    """A user's manager and what lies above it are root's, all below that user's."""
    units["user@1000.service"] = Files(
        None, (), Source("/c", "[Manager]\nDefaultTasksMax=infinity\n"), vendor=DEBIAN
    )
    made = Made(ID, created, maker="bob" if len(levels) == 1 else "")
    told = explain_podman.explain_running_tasks(see(*levels), levels, made, facts(), ASKED)
    assert [cause.code for cause in told.causes] == codes
    assert told.owner == owner


def test_a_user_s_trial_says_nothing_of_tasks(
    units: dict[str, Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no cgroup of its own, whatever bounds the check itself."""
    monkeypatch.setattr(check_podman, "find_podman", lambda: "/usr/bin/podman")
    monkeypatch.setattr(
        check_podman, "open_session", lambda _user: check_podman.Session({}, "sshd")
    )
    monkeypatch.setattr(check_podman, "gather_podman", lambda *_words: facts())
    monkeypatch.setattr(explain_podman, "find_nr_open_at_boot", lambda _look: 1048576)
    for user, levels in (("", (OWN, SLICE)), ("alice", ())):
        seen = Canary(ContainerLimits({}, None, levels))
        monkeypatch.setattr(
            check_podman, "run_podman_canary", lambda *_words, seen=seen, **_more: seen
        )
        (found,) = check_podman.check_new(ASKED, user, "auto", Look(), 9)
        if user:
            assert (found.status, found.owner) == ("unknown", "alice")
            assert found.observation.reason.startswith(
                "a trial of alice's has no cgroup of its own"
            )
        else:
            assert (found.status, found.observation) == ("pass", Observation(2048, OWN.path))


def test_a_chain_of_tasks_is_shown(
    units: dict[str, Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    units["machine.slice"] = FEW_OF_ALL
    look = Look()
    look.at(KernelRead).nr_open = 1048576
    me = RunningContainer(Container("podman", ID, label="web"), read_process(os.getpid()), 0)
    monkeypatch.setattr(trace_podman, "find_running", lambda *_words: [me])
    monkeypatch.setattr(trace_podman, "gather_podman", lambda *_words: facts(FEW))
    monkeypatch.setattr(trace_podman, "find_quadlet", lambda _cgroup: None)
    monkeypatch.setattr(trace_podman, "read_created", lambda _one: Started("web", {}, "", 700))
    monkeypatch.setattr(trace_podman, "read_levels", lambda _cgroup: [OWN, SLICE])
    seen = Canary(ContainerLimits({}, None, (OWN, SLICE)))
    monkeypatch.setattr(trace_podman, "run_podman_canary", lambda _caller: seen)
    above = [("kernel", "10000"), ("machine.slice", "90"), ("cgroup", "unlimited")]
    new = trace_podman.trace_podman("", "tasks", look)
    assert [(one.name, one.value) for one in new] == [
        *above,
        ("stated", "100"),
        ("container", "2048"),
    ]
    web = trace_podman.trace_running("container:podman/web", "tasks", look)
    assert [(one.name, one.value) for one in web] == [
        *above, ("stated", "100"), ("created", "700"), ("container", "2048"),
    ]  # fmt: skip
    monkeypatch.setattr(trace_podman, "gather_podman", lambda *_words: facts())
    assert trace_podman.trace_podman("", "tasks", look)[3][:2] == ("default", "2048")
    with pytest.raises(ValueError, match="'container:podman/x' is not running"):
        trace_podman.trace_running("container:podman/x", "tasks", look)
