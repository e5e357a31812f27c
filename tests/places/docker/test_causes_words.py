# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of several statements is blamed, and the words for it."""

from __future__ import annotations

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import Declaration, Rlimit
from mlhost_limits.docker.causes import find_docker_causes
from mlhost_limits.docker.model import Parent, UnitLimit

from tests.worlds.docker_scene import (
    HEALTHY,
    MEMLOCK,
    PATH,
    PLACE,
    SHM,
    SOFT,
    UNIT,
    flag,
    limit_flag,
    make_site,
    make_world,
)

ENTRY = '"nofile": {"Name": "nofile", "Hard": 1048576, "Soft": 65536}'
LOW = ENTRY.replace("65536", "9")
LOCK = '"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}'
FEW = Requirement(PLACE, "nofile", "soft", None, 500)
BASE = {"nofile": (Rlimit(1024, 4096), Rlimit(4096, 4096))}


OTHER = LOW.replace('"nofile": {', '"x": {')
MISNAMED = ENTRY.replace('"Name": "nofile"', '"Name": "nproc"')


@pytest.mark.parametrize(
    ("wanted", "text", "told", "shadows"),
    [
        (SOFT, HEALTHY.replace(ENTRY, LOW), f"{PATH}:3 {LOW} states too little", []),
        (FEW, HEALTHY, f"{PATH}:3 {ENTRY} states too much", []),
        (SOFT, HEALTHY.replace(LOCK, LOW),
         f"{PATH}:4 {LOW} counts, since it comes after {PATH}:3 {ENTRY}", [3]),
        (SOFT, HEALTHY.replace(LOCK, OTHER),
         f"{PATH}:4 {OTHER} is one of two that limit the same, and which counts is not defined", [3]),
        (SOFT, HEALTHY.replace(ENTRY, MISNAMED),
         f"{PATH}:3 {MISNAMED} limits nproc, since its Name decides", []),
        (SHM, HEALTHY.replace(',\n  "default-shm-size": "8G"', ""),
         "no file states default-shm-size: /dev/shm has 64MiB", []),
        (SHM, HEALTHY.replace("8G", "1G"), f'{PATH}:6 "default-shm-size": "1G" states too little', []),
    ],
)  # fmt: skip
def test_what_is_said_of_a_statement(
    wanted: Requirement, text: str, told: str, shadows: list[int]
) -> None:
    cause = find_docker_causes(wanted, make_world(text, base=BASE), make_site())[0]
    assert cause.text == told
    assert [one.line for one in cause.shadows] == shadows


def test_of_two_flags_the_first_is_hidden() -> None:
    flags = [limit_flag("nofile=65536:1048576", 3), limit_flag("nofile=9:9", 4)]
    (cause,) = find_docker_causes(SOFT, make_world(None, flags), make_site())
    assert cause.code == "docker-later-wins"
    assert [one.place for one in cause.shadows] == [f"{UNIT}:3"]
    both = make_world(None, [*flags[:1], limit_flag("memlock=5", 4), limit_flag("nofile=9", 5)])
    (cause,) = find_docker_causes(SOFT, both, make_site())
    assert (cause.at and cause.at.line, len(cause.shadows)) == (5, 1)


def test_a_key_that_stands_there_twice_is_blamed_on_its_last_line() -> None:
    text = '\n{"default-shm-size": "1G",\n"debug": true, "default-shm-size": "2G"}'
    (cause,) = find_docker_causes(SHM, make_world(text), make_site())
    assert (cause.code, cause.at) == (
        "docker-stated-twice",
        Declaration(PATH, 3, '"default-shm-size": "2G"', ""),
    )


def test_what_a_wrong_name_leaves_is_asked_as_the_policy_has_it() -> None:
    """What there was is what a container gets now, or else what the entry says."""
    text = HEALTHY.replace('"Name": "nofile"', '"Name": "nproc"')
    for base in (BASE, {}):
        (cause,) = find_docker_causes(SOFT, make_world(text, base=base), make_site())
        assert cause.code == "docker-name-differs"
        assert cause.remedy.text.startswith(f"in {PATH}: default-ulimits.nofile 65536:1048576")


def test_a_limit_that_is_only_bounded_above_is_asked_as_the_first_that_there_is() -> None:
    text = HEALTHY.replace('"Name": "nofile"', '"Name": "nproc"')
    base = {"nofile": (Rlimit(100, 100), Rlimit(4096, 4096))}
    site = make_site(ContainerPolicy({"nofile": Limit(max=500)}))
    (cause,) = find_docker_causes(FEW, make_world(text, base=base), site)
    assert cause.remedy.text.startswith(f"in {PATH}: default-ulimits.nofile 100")


@pytest.mark.parametrize(
    ("wanted", "limit", "word"),
    [(SOFT, 9, "little"), (FEW, 501, "much"), (MEMLOCK, 9, "little")],
)
def test_a_unit_of_containerd_states_too_little_or_much(
    wanted: Requirement, limit: int, word: str
) -> None:
    at = Declaration("/c.service", 2, "LimitX=9", limit)
    stated = {wanted.item: UnitLimit(Rlimit(limit, limit), at)}
    parent = Parent(1, "containerd.service", {wanted.item: Rlimit(limit, limit)}, "", stated)
    base = {wanted.item: (Rlimit(limit, limit),)}
    site = make_site()._replace(parent=parent)
    causes = find_docker_causes(wanted, make_world("{}", base=base), site)
    assert causes[0].code == "docker-containerd-too-low"
    assert f"/c.service:2 LimitX=9 states too {word}, and daemon.json nothing" in causes[0].text


def test_another_file_is_blamed_only_where_there_is_one() -> None:
    """Without the flag, or without daemon.json in its usual place, nothing hides it."""
    named = [flag("config-file=/etc/docker/site.json", 2)]
    for flags, usual in ((named, None), ([], HEALTHY)):
        world = make_world("{}", flags, BASE, path="/etc/docker/site.json")
        causes = find_docker_causes(MEMLOCK, world, make_site()._replace(usual=usual))
        assert "docker-config-elsewhere" not in [one.code for one in causes]
