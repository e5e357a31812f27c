# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's own bound on tasks is told from those of the units above it, by its id."""

from __future__ import annotations

import pytest
from mlhost_limits.containers.tasks import Bounds, find_uid, read_spec_tasks, split_levels
from mlhost_limits.core.rlimit import UNLIMITED
from mlhost_limits.systemd.tasks import Level

ID = 64 * "a"
SYSTEM = Level("system.slice", "/system", 900)


def level(unit: str, most: int = 100) -> Level:
    return Level(unit, f"/{unit}", most)


@pytest.mark.parametrize(
    ("levels", "identity", "bounds"),
    [
        ([level(f"docker-{ID}.scope"), SYSTEM], ID,
         Bounds(level(f"docker-{ID}.scope"), Level("docker-.scope", f"/docker-{ID}.scope", 100), (SYSTEM,))),
        ([level(f"cri-containerd-{ID}.scope"), SYSTEM], "",
         Bounds(level(f"cri-containerd-{ID}.scope"),
                Level("cri-containerd-.scope", f"/cri-containerd-{ID}.scope", 100), (SYSTEM,))),
        ([level(f"libpod-payload-{ID}"), level("web.service"), SYSTEM], ID,
         Bounds(level(f"libpod-payload-{ID}"), None, (level("web.service"), SYSTEM))),
        ([level(ID), level("docker", UNLIMITED)], ID, Bounds(level(ID), None, (level("docker", UNLIMITED),))),
        ([level("box"), level("default")], "box", Bounds(level("box"), None, (level("default"),))),
        ([SYSTEM], "slice", Bounds(None, None, (SYSTEM,))),
        ([level("docker.service"), SYSTEM], ID, Bounds(None, None, (level("docker.service"), SYSTEM))),
        ([], "", Bounds(None, None, ())),
    ],
)  # fmt: skip
def test_the_cgroup_that_is_named_by_the_id(
    levels: list[Level], identity: str, bounds: Bounds
) -> None:
    assert split_levels(levels, identity) == bounds


def test_what_lies_below_is_the_container_s_own() -> None:
    """It may make cgroups there of any name, its own among them."""
    inner, own = level(f"docker-{ID}.scope", 7), level(f"docker-{ID}.scope", 100)
    bounds = split_levels([level("init.scope", 50), inner, level("x.slice"), own, SYSTEM], ID)
    assert (bounds.own, bounds.above) == (inner, (SYSTEM,))


def test_only_units_have_files_and_a_scope_only_where_its_engine_is_silent() -> None:
    scope = level(f"docker-{ID}.scope")
    bounds = split_levels([scope, level("kubepods"), SYSTEM, level("user@7.service")], ID)
    units = [one.unit for one in bounds.list_units(stated=False)]
    assert units == ["docker-.scope", "system.slice", "user@7.service"]
    assert [one.unit for one in bounds.list_units(stated=True)] == units[1:]


def test_whose_manager_holds_it() -> None:
    assert (
        find_uid([level("user.slice"), level("user@1000.service"), level("user@7.service")]) == 1000
    )
    assert find_uid([level("user@.service"), SYSTEM]) is None


@pytest.mark.parametrize(
    ("spec", "tasks"),
    [
        ({"linux": {"resources": {"pids": {"limit": 7}}}}, 7),
        ({"linux": {"resources": {"pids": {"limit": -1}}}}, UNLIMITED),
        ({"linux": {"resources": {"pids": {"limit": 0}}}}, UNLIMITED),
        ({"linux": {"resources": {"pids": None}}}, None),
        ({"linux": {"resources": {"pids": {"limit": None}}}}, None),
        ({"linux": None}, None),
        ({}, None),
    ],
)
def test_what_a_specification_bounds(spec: dict[str, object], tasks: int | None) -> None:
    assert read_spec_tasks(spec) == tasks
