# SPDX-License-Identifier: GPL-3.0-or-later
"""The words about a running container: its own limits, what changed, and what its maker writes."""

from __future__ import annotations

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.containers.tasks import Bounds
from mlhost_limits.core.finding import FAIL, PASS, Finding, Observation, Requirement, judge
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.docker.compose import Compose
from mlhost_limits.docker.model import Parent
from mlhost_limits.docker.outlook import Scene
from mlhost_limits.docker.running import _PAGE, Running, explain_running, find_tasks_causes
from mlhost_limits.docker.site import Pending
from mlhost_limits.systemd.tasks import Level

from tests.worlds.docker_scene import HARD, HEALTHY, MEMLOCK, SHM, SOFT, make_site, make_world

GIB = 2**30
LIMITS = {
    "nofile": Rlimit(700, 800),
    "memlock": Rlimit(2**23, 2**23),
    "shm_size": Rlimit(GIB, GIB),
}
SEEN = {"nofile": Rlimit(65536, 1048576), "memlock": Rlimit(UNLIMITED, UNLIMITED)}
SINCE = "2026-05-05T10:00:00"
SCENE = Scene(make_world(), make_world(), make_site(), Pending(SINCE, "", ()), SEEN)
OWN = Running("job", LIMITS, LIMITS, LIMITS, LIMITS, shm_size=GIB)
COMPOSE = Compose("train", (("/srv/c.yml", "services:\n  train:\n    image: x\n"),))
SAID = "services:\n  train:\n    ulimits:\n      nofile: 700\n      memlock: 8388608\n"
STATES = Compose("train", (("/srv/c.yml", SAID),))


def explain(wanted: Requirement, running: Running = OWN, scene: Scene = SCENE) -> Finding:
    value = wanted.pick(running.limits[wanted.item])
    return explain_running(judge(wanted, Observation(value, "")), running, scene)


def test_its_own_option_is_cited_and_what_to_give_instead() -> None:
    (cause,) = explain(SOFT).causes
    assert cause.text == "job was created with --ulimit nofile=700:800, which beats every default"
    assert cause.remedy.text == (
        "create it anew without that, or with 65536:1048576 (docker update cannot change it)"
    )
    silent = SCENE._replace(site=make_site(ContainerPolicy({}, None)))
    (cause,) = explain(SOFT, scene=silent).causes
    assert cause.remedy.text == "create it anew without that (docker update cannot change it)"


@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        (SOFT, 'make it "nofile" {soft: 65536, hard: 1048576} there'),
        (MEMLOCK, 'make it "memlock" {soft: -1, hard: -1} there'),
    ],
)
def test_a_file_of_compose_is_told_what_to_write(wanted: Requirement, asked: str) -> None:
    """In bytes, and -1 for no limit."""
    (cause,) = explain(wanted, OWN._replace(compose=STATES)).causes
    assert (cause.code, cause.remedy.text) == ("docker-compose-states", asked)
    silent = SCENE._replace(site=make_site(ContainerPolicy({}, None)))
    (cause,) = explain(wanted, OWN._replace(compose=STATES), silent).causes
    assert cause.remedy.text == "take it out there"


def test_each_bound_is_looked_for_by_its_name() -> None:
    text = (
        "services:\n  train:\n    ulimits:\n      nofile:\n        soft: 700\n        hard: 800\n"
    )
    compose = Compose("train", (("/srv/c.yml", text),))
    for wanted, line in ((SOFT, 5), (HARD, 6), (SOFT._replace(bound="value"), 5)):
        (cause,) = explain(wanted, OWN._replace(compose=compose)).causes
        assert cause.at
        assert (cause.code, cause.at.line) == ("docker-compose-states", line)


def test_what_an_engine_gives_everybody_is_not_its_own() -> None:
    """Where the engine does not tell which limits are its own."""
    scene = SCENE._replace(seen={**SEEN, "nofile": LIMITS["nofile"]})
    assert explain(SOFT, OWN._replace(own=None), scene).causes == ()
    (cause,) = explain(SOFT, OWN._replace(own=None)).causes
    assert cause.code == "docker-own-ulimit"


@pytest.mark.parametrize(
    ("since", "codes"),
    [("2026-05-05T09:59:59", ["docker-container-older"]), (SINCE, [])],
)
def test_a_container_of_the_same_second_is_not_older(since: str, codes: list[str]) -> None:
    unknown = OWN._replace(own={}, merged={}, at_start=None, since=since)
    assert [cause.code for cause in explain(SOFT, unknown).causes] == codes
    started = unknown._replace(at_start={})
    parent = Parent(1, "containerd.service", {}, SINCE)
    scene = SCENE._replace(site=SCENE.site._replace(parent=parent))
    assert [cause.code for cause in explain(SOFT, started, scene).causes] == codes


def test_of_two_causes_the_last_ends_with_its_restart_and_the_first_says_that_it_binds() -> None:
    """Only memlock may bind nothing."""
    low = HEALTHY.replace('"Hard": -1', '"Hard": 9').replace('"Soft": -1', '"Soft": 8')
    world = make_world(low.replace("65536", "1024"))
    seen = {"nofile": Rlimit(5, 5), "memlock": Rlimit(5, 5)}
    scene = Scene(world, world, make_site(), Pending(SINCE, SINCE, ()), seen)
    running = OWN._replace(own={}, merged={}, at_start=LIMITS)
    for wanted in (SOFT, MEMLOCK):
        first, last = explain(wanted, running, scene).causes
        assert (first.code, last.code) == ("docker-config-not-read", "docker-stated-too-low")
        assert ("CAP_IPC_LOCK" in first.text) is (wanted is MEMLOCK)
        assert "CAP_IPC_LOCK" not in last.text
        assert last.remedy.commands[-1] == ("docker", "restart", "job")
        assert last.remedy.text.endswith(", and then job")
        assert ("docker", "restart", "job") not in first.remedy.commands


@pytest.mark.parametrize(
    ("size", "codes"),
    [(GIB + _PAGE - 1, ["docker-shm-fixed"]), (GIB + _PAGE, []), (GIB - _PAGE, [])],
)
def test_a_shm_has_whole_pages(size: int, codes: list[str]) -> None:
    """One that differs by a page or more was changed since; nothing of its creation is at fault."""
    found = explain(SHM, OWN._replace(shm_size=size))
    assert [cause.code for cause in found.causes] == codes


def test_the_words_about_its_shm() -> None:
    """Each says what it has and asks for what the policy asks."""
    told = {
        name: explain(SHM, OWN._replace(**changes)).causes[0]  # type: ignore[arg-type]
        for name, changes in {
            "host": {"ipc": "host"},
            "other": {"ipc": "container:c0ffee"},
            "mounted": {"mounts_shm": True},
            "fixed": {},
            "compose": {"compose": COMPOSE},
        }.items()
    }
    assert {name: cause.remedy.text for name, cause in told.items()} == {
        "host": "make that larger, and say so in /etc/fstab for the next boot",
        "other": "create that one anew with --shm-size=8G",
        "mounted": "create job anew with --shm-size=8G and without that mount",
        "fixed": "create job anew with --shm-size=8G",
        "compose": "state shm_size: 8G for train there",
    }
    assert told["host"].remedy.commands == (("mount", "-o", f"remount,size={8 * GIB}", "/dev/shm"),)
    assert all("1GiB" in cause.text for cause in told.values())


TASKS = Requirement("container:docker/job", "tasks", "value", 500)
LEVEL = Level("docker-a.scope", "/sys/pids.max", 100)


@pytest.mark.parametrize(
    ("most", "stated", "text"),
    [
        (100, None, "job was given no bound, and /sys/pids.max has 100: something changed it"),
        (100, UNLIMITED, "job was given no bound, and /sys/pids.max has 100: something changed it"),
        (100, 500, "job was given 500, and /sys/pids.max has 100: something changed it"),
        (100, 499, "job was created with --pids-limit=499"),
        (499, 499, "job was created with --pids-limit=499"),
        (500, 500, ""),
    ],
)
def test_the_words_about_its_tasks(most: int, stated: int | None, text: str) -> None:
    bounds = Bounds(LEVEL._replace(most=most), None, ())
    causes = find_tasks_causes(TASKS, bounds, OWN._replace(tasks=stated))
    assert [cause.text for cause in causes] == ([text] if text else [])


def test_without_a_least_number_of_tasks_nothing_is_too_low() -> None:
    bounds = Bounds(LEVEL._replace(most=0), None, ())
    assert find_tasks_causes(TASKS._replace(minimum=None), bounds, OWN) == []


def test_after_a_boot_its_own_limit_comes_back() -> None:
    scene = SCENE._replace(boot=make_world(HEALTHY.replace("65536", "9")))
    running = OWN._replace(starts_at_boot=True, own={}, merged=SEEN, at_start={}, limits=LIMITS)
    assert explain(SOFT, running, scene).outlook == ("", PASS, FAIL)
    assert explain(SOFT, running._replace(own=SEEN), scene).outlook == ("", PASS, PASS)
