# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's own bound on tasks is told from those of the units above it, by its id."""

from __future__ import annotations

import json

import pytest
from mlhost_limits.containers.spec import read_spec
from mlhost_limits.containers.tasks import Bounds, find_uid, split_levels
from mlhost_limits.core.values import UNLIMITED
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
    bounds = split_levels([scope, SYSTEM], ID)
    assert [one.unit for one in bounds.list_units(stated=False)] == [
        "docker-.scope",
        "system.slice",
    ]
    assert bounds.list_units(stated=True) == [SYSTEM]


def test_a_scope_below_a_service_is_no_unit() -> None:
    for above, name in (("x.service", "docker"), ("x.slice", "a$(x)")):
        bounds = split_levels([level(f"{name}-{ID}.scope"), level(above)], ID)
        assert [one.unit for one in bounds.list_units(stated=False)] == [above]


@pytest.mark.parametrize(
    ("names", "units"),
    [
        ("kubepods", ""),
        ("docker x.service system.slice", "x.service system.slice"),
        ("ssh.service x.service system.slice", "x.service system.slice"),
        ("a.slice docker-1.scope b.slice", "docker-1.scope b.slice"),
        ("web.service app.slice user@7.service user-7.slice user.slice",
         "web.service app.slice user@7.service user-7.slice user.slice"),
        ("ssh.service a.scope user@7.service user.slice", "a.scope user@7.service user.slice"),
        ("a.slice user@0.service user@7.service user.slice", "user@7.service user.slice"),
        ("a.slice user@7.service b.slice user@7.service user.slice", "b.slice user@7.service user.slice"),
        ("a$(x).slice system.slice", "system.slice"),
    ],
)  # fmt: skip
def test_what_a_user_names_like_a_unit_is_none(names: str, units: str) -> None:
    """Below a service, a scope and a user's manager whoever has that may make any cgroup."""
    found = split_levels([level(ID), *map(level, names.split())], ID).list_units(stated=True)
    assert [one.unit for one in found] == units.split()
    assert find_uid(found) == (7 if "user@7" in units else None)


@pytest.mark.parametrize(
    ("spec", "tasks"),
    [
        ({"linux": {"resources": {"pids": {"limit": 7}}}}, 7),
        ({"linux": {"resources": {"pids": {"limit": 1}}}}, 1),
        ({"linux": {"resources": {"pids": {"limit": -1}}}}, UNLIMITED),
        ({"linux": {"resources": {"pids": {"limit": 0}}}}, UNLIMITED),
        ({"linux": {"resources": {"pids": None}}}, None),
        ({"linux": {"resources": {"pids": {"limit": None}}}}, None),
        ({"linux": None}, None),
        ({}, None),
    ],
)
def test_what_a_specification_bounds(spec: dict[str, object], tasks: int | None) -> None:
    assert read_spec(json.dumps({"process": {}, **spec})).tasks == tasks


def test_a_scope_without_the_name_of_an_engine_is_nobody_s_template() -> None:
    named, bare = (
        split_levels([level(f"docker-{ID}.scope")], ID),
        split_levels([level(f"{ID}.scope")], ID),
    )
    assert named.scope
    assert (named.scope.unit, bare.scope) == ("docker-.scope", None)
