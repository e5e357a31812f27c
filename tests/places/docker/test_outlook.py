# SPDX-License-Identifier: GPL-3.0-or-later
"""What containers have now, after a restart and after a boot, and why that falls short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.finding import FAIL, PASS, UNKNOWN, Finding, Observation, judge
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.docker.compose import Compose
from mlhost_limits.docker.model import Parent
from mlhost_limits.docker.outlook import Scene, explain_new, explain_start
from mlhost_limits.docker.running import Running, explain_running
from mlhost_limits.docker.site import Pending

from tests.worlds.docker_scene import (
    HEALTHY,
    MEMLOCK,
    PATH,
    RESTART,
    SHM,
    SOFT,
    START,
    collect,
    limit_flag,
    make_site,
    make_world,
)

if TYPE_CHECKING:
    from mlhost_limits.core.finding import Requirement
    from mlhost_limits.docker.model import World

GIB = 2**30
GOOD = {
    "nofile": Rlimit(65536, 1048576),
    "memlock": Rlimit(UNLIMITED, UNLIMITED),
    "shm_size": Rlimit(8 * GIB, 8 * GIB),
}
LOW = {**GOOD, "nofile": Rlimit(1024, 4096)}
STATES_LOW = make_world(HEALTHY.replace("1048576", "4096").replace("65536", "1024"))
BRICK = make_world(HEALTHY.replace('"Soft": 65536', '"Soft": 2000000'))
SAME = Pending("2026-05-05T10:00:00", "", ())
CHANGED = SAME._replace(changed="2026-05-05T11:00:00")


def make_scene(
    restart: World | None = None,
    boot: World | None = None,
    pending: Pending = SAME,
    seen: dict[str, Rlimit] | None = None,
    refused: bool = False,
) -> Scene:
    restart = restart or make_world()
    return Scene(
        restart, boot or restart, make_site(), pending, GOOD if seen is None else seen, refused
    )


def find(wanted: Requirement, limits: dict[str, Rlimit]) -> Finding:
    limit = limits[wanted.item]
    return judge(wanted, Observation(limit.soft if wanted.bound == "soft" else limit.hard, ""))


NEW = [
    ("all is well", make_scene(), [], PASS, PASS),
    (
        "a bad file is read at the next restart",
        make_scene(STATES_LOW, pending=CHANGED),
        [("docker-stated-too-low", f"{PATH}:3")],
        FAIL,
        FAIL,
    ),
    (
        "no container starts after the next boot",
        make_scene(boot=make_world(nr_open=500000)),
        [("docker-above-nr-open", f"{PATH}:3")],
        PASS,
        FAIL,
    ),
    (
        "no container starts after the next restart",
        make_scene(BRICK, pending=CHANGED),
        [("docker-no-container-starts", f"{PATH}:3")],
        FAIL,
        FAIL,
    ),
    ("a container starts with what should stop it", make_scene(BRICK), [], UNKNOWN, UNKNOWN),
    (
        "the file states too little",
        make_scene(STATES_LOW, seen=LOW),
        [("docker-stated-too-low", f"{PATH}:3")],
        FAIL,
        FAIL,
    ),
    (
        "a good file was not read",
        make_scene(pending=CHANGED, seen=LOW),
        [("docker-config-not-read", f"{PATH}:3")],
        PASS,
        PASS,
    ),
    (
        "a file was not read that states too little as well",
        make_scene(STATES_LOW, pending=CHANGED, seen={**LOW, "nofile": Rlimit(9, 9)}),
        [("docker-config-not-read", f"{PATH}:3"), ("docker-stated-too-low", f"{PATH}:3")],
        FAIL,
        FAIL,
    ),
    (
        "a file that was touched states too little",
        make_scene(STATES_LOW, pending=CHANGED, seen=LOW),
        [("docker-stated-too-low", f"{PATH}:3")],
        FAIL,
        FAIL,
    ),
    ("nobody knows why", make_scene(seen=LOW), [], UNKNOWN, UNKNOWN),
]


@pytest.mark.parametrize(
    ("scene", "causes", "restart", "boot"), [case[1:] for case in NEW], ids=[one[0] for one in NEW]
)
def test_a_new_container(
    scene: Scene, causes: list[tuple[str, str]], restart: str, boot: str
) -> None:
    found = explain_new(find(SOFT, dict(scene.seen)), scene)
    assert collect(found.causes) == causes
    assert found.outlook == ("", restart, boot)


def test_a_new_container_that_was_not_measured() -> None:
    """It is unknown now; what the files will give is told all the same, and nothing is blamed."""
    found = explain_new(
        judge(SOFT, Observation(None, "", "never")), make_scene(STATES_LOW, seen={})
    )
    assert (found.status, found.causes, found.outlook) == (UNKNOWN, (), ("", FAIL, FAIL))


@pytest.mark.parametrize(
    ("scene", "codes", "restart"),
    [
        (make_scene(BRICK, seen={}, refused=True), ["docker-no-container-starts"], FAIL),
        (make_scene(pending=CHANGED, seen={}, refused=True), ["docker-config-not-read"], PASS),
        (make_scene(seen={}, refused=True), [], UNKNOWN),
        (make_scene(None, BRICK, CHANGED, {}, True), ["docker-config-not-read"], PASS),
    ],
)
def test_no_container_starts(scene: Scene, codes: list[str], restart: str) -> None:
    """The entry, a file that is right by now, or a reason that is not ours."""
    found = explain_start(judge(START, Observation("OCI runtime create failed", "")), scene)
    assert ([cause.code for cause in found.causes], found.outlook.next_restart) == (codes, restart)


JOB = Running("job", LOW, GOOD, {}, {}, "2026-05-05T09:00:00", shm_size=8 * GIB)
OLD = JOB._replace(at_start={"nofile": LOW["nofile"]})
TOUCHED = JOB._replace(at_start={"nofile": GOOD["nofile"]})
OWN = JOB._replace(
    own={"nofile": LOW["nofile"]},
    merged={**GOOD, "nofile": LOW["nofile"]},
    at_start={"nofile": LOW["nofile"]},
)
SILENT = make_world("{}", base={"nofile": (GOOD["nofile"],)})
PARENT = Parent(1, "containerd.service", {}, "2026-05-05T09:30:00")


def with_parent(scene: Scene, parent: Parent | None) -> Scene:
    return scene._replace(site=scene.site._replace(parent=parent))


RUNNING: list[tuple[str, Running, Scene, list[str], str]] = [
    ("it is older", OLD, make_scene(), ["docker-container-older"], PASS),
    (
        "it had no such limit at its start, which is stated by now",
        JOB,
        make_scene(),
        ["docker-container-older"],
        PASS,
    ),
    (
        "how it was started is not known, and dockerd started since",
        JOB._replace(at_start=None),
        make_scene(),
        ["docker-container-older"],
        PASS,
    ),
    (
        "how it was started is not known, and it began under this dockerd",
        JOB._replace(at_start=None, since="2026-05-05T12:00:00"),
        make_scene(),
        [],
        PASS,
    ),
    (
        "it inherits from a containerd that started since",
        JOB._replace(merged={}),
        with_parent(make_scene(SILENT), PARENT),
        ["docker-container-older"],
        PASS,
    ),
    (
        "it has not what it inherits",
        JOB._replace(merged={}, since="2026-05-05T12:00:00"),
        with_parent(make_scene(SILENT), PARENT),
        [],
        PASS,
    ),
    ("containerd is not known", JOB._replace(merged={}), make_scene(SILENT), [], PASS),
    ("of its own limit", OWN, make_scene(), ["docker-own-ulimit"], FAIL),
    (
        "of its own limit, by a Compose file that is gone",
        OWN._replace(compose=Compose("train", (("/srv/compose.yml", None),))),
        make_scene(),
        ["docker-compose-states"],
        FAIL,
    ),
    (
        "of its own limit, as far as the engine tells",
        OWN._replace(own=None),
        make_scene(),
        ["docker-own-ulimit"],
        FAIL,
    ),
    (
        "of its own limit, and the default would not do",
        OWN,
        make_scene(STATES_LOW, seen={**GOOD, "nofile": Rlimit(1024, 4096)}),
        ["docker-own-ulimit", "docker-stated-too-low"],
        FAIL,
    ),
    ("its program lowers it", TOUCHED, make_scene(), ["docker-changed-inside"], UNKNOWN),
    (
        "its program lowers a limit that was too low",
        TOUCHED._replace(at_start={"nofile": Rlimit(2048, 4096)}),
        make_scene(STATES_LOW, seen=LOW),
        ["docker-changed-inside", "docker-stated-too-low"],
        UNKNOWN,
    ),
    (
        "the defaults are too low",
        OLD._replace(merged=LOW),
        make_scene(STATES_LOW, seen=LOW),
        ["docker-stated-too-low"],
        FAIL,
    ),
    (
        "the defaults are too low, and were not measured",
        OLD._replace(merged={}),
        make_scene(STATES_LOW, seen={}),
        ["docker-stated-too-low"],
        FAIL,
    ),
    (
        "the defaults are too low, and nobody knows why",
        OLD._replace(merged=LOW),
        make_scene(seen=LOW),
        [],
        FAIL,
    ),
    (
        "what dockerd runs with is not known",
        OLD._replace(merged={}),
        make_scene(pending=CHANGED, seen={}),
        [],
        UNKNOWN,
    ),
    (
        "none would start again",
        OLD,
        make_scene(BRICK, seen={}, refused=True),
        ["docker-no-container-starts"],
        FAIL,
    ),
    (
        "none would start again, of a file that is right by now",
        OLD,
        make_scene(pending=CHANGED, seen={}, refused=True),
        ["docker-config-not-read"],
        FAIL,
    ),
]


@pytest.mark.parametrize(
    ("running", "scene", "codes", "restart"),
    [case[1:] for case in RUNNING],
    ids=[case[0] for case in RUNNING],
)
def test_a_running_container(
    running: Running, scene: Scene, codes: list[str], restart: str
) -> None:
    found = explain_running(find(SOFT, LOW), running, scene)
    assert [cause.code for cause in found.causes] == codes
    assert found.outlook == ("", restart, "")


@pytest.mark.parametrize(
    ("running", "scene", "codes", "outlook"),
    [
        (JOB, make_scene(), [], (PASS, PASS)),
        (OWN, make_scene(), ["docker-own-ulimit"], (FAIL, FAIL)),  # Raised by prlimit.
        (
            JOB._replace(own={"nofile": GOOD["nofile"]}, at_start=GOOD),
            make_scene(STATES_LOW, seen=LOW),
            [],
            (PASS, PASS),
        ),
        (JOB._replace(own=None), make_scene(), [], (PASS, UNKNOWN)),
        (
            JOB._replace(merged=LOW),
            make_scene(),
            [],
            (FAIL, PASS),
        ),  # The engine contradicts itself.
        (
            JOB._replace(merged=LOW),
            make_scene(STATES_LOW, seen=LOW),
            ["docker-stated-too-low"],
            (FAIL, FAIL),
        ),
        (
            JOB,
            make_scene(boot=STATES_LOW),
            ["docker-stated-too-low"],
            (PASS, FAIL),
        ),
        (JOB, make_scene(boot=BRICK), ["docker-no-container-starts"], (PASS, FAIL)),
    ],
)
def test_a_running_container_that_has_enough(
    running: Running, scene: Scene, codes: list[str], outlook: tuple[str, str]
) -> None:
    """What its restart and a boot will take from it is told; it comes up again by itself."""
    running = running._replace(starts_at_boot=True, limits=GOOD)
    found = explain_running(find(SOFT, GOOD), running, scene)
    assert [cause.code for cause in found.causes] == codes
    assert found.outlook == ("", *outlook)


def test_what_was_not_seen_is_not_explained() -> None:
    finding = judge(SHM, Observation(None, "", "it has no /dev/shm of its own"))
    assert explain_running(finding, JOB, make_scene()) == finding


@pytest.mark.parametrize(("removed", "restarts"), [(False, True), (True, False)])
def test_the_last_remedy_ends_with_the_restart_of_the_container(
    removed: bool, restarts: bool
) -> None:
    """But not of one that dockerd's restart removes."""
    running = OLD._replace(merged=LOW, removed_when_stopped=removed)
    found = explain_running(find(SOFT, LOW), running, make_scene(STATES_LOW, seen=LOW))
    commands = found.causes[-1].remedy.commands
    assert RESTART in commands
    assert (commands[-1] == ("docker", "restart", "job")) is restarts


@pytest.mark.parametrize(("binds", "said"), [(True, "it binds"), (False, "has CAP_IPC_LOCK")])
def test_memlock_says_whether_it_binds(binds: bool, said: str) -> None:
    limits = {**GOOD, "memlock": Rlimit(2**23, 2**23)}
    running = JOB._replace(limits=limits, binds=binds)
    (cause,) = explain_running(find(MEMLOCK, limits), running, make_scene()).causes
    assert said in cause.text


SMALL = {**GOOD, "shm_size": Rlimit(GIB, GIB)}


@pytest.mark.parametrize(
    ("changes", "codes", "restart"),
    [
        ({"shm_size": GIB}, ["docker-shm-fixed"], FAIL),
        (
            {"shm_size": GIB, "compose": Compose("a", (("/x", "services:\n"),))},
            ["docker-compose-states"],
            FAIL,
        ),
        ({"ipc": "host"}, ["docker-shm-shared"], UNKNOWN),
        ({"ipc": "container:4711"}, ["docker-shm-shared"], UNKNOWN),
        ({"mounts_shm": True}, ["docker-shm-mounted"], UNKNOWN),
        ({}, [], PASS),  # Somebody made it smaller since.
    ],
)
def test_the_shm_of_a_running_container(
    changes: dict[str, Any], codes: list[str], restart: str
) -> None:
    """Its size was fixed at its creation; it is another's; something lies over it."""
    running = JOB._replace(limits=SMALL, starts_at_boot=True, **changes)
    found = explain_running(find(SHM, SMALL), running, make_scene())
    assert [cause.code for cause in found.causes] == codes
    assert found.outlook == ("", restart, restart)


def test_a_shm_of_which_nothing_is_demanded_is_not_blamed() -> None:
    scene = make_scene()
    scene = scene._replace(site=make_site(ContainerPolicy({}, None)))
    assert explain_running(find(SHM, SMALL), JOB._replace(limits=SMALL), scene).causes == ()


def test_flags_that_differ_are_a_difference() -> None:
    """Whatever they say: a restart would give dockerd others; their places do not count."""
    scene = make_scene(make_world(None, [limit_flag("core=0")]))
    assert scene.differs
    running = SAME._replace(flags=(limit_flag("core=0", 0, "/proc/1/cmdline"),))
    assert not scene._replace(pending=running).differs
