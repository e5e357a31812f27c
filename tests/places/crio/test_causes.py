# SPDX-License-Identifier: GPL-3.0-or-later
"""Each thing that keeps a container of CRI-O from its limits is named with its line and its fix."""

from __future__ import annotations

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.cause import Cause
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import Rlimit
from mlhost_limits.crio.causes import CrioFacts, find_crio_causes, foresee
from mlhost_limits.crio.crio_conf import DROP_INS, MAIN, read_all
from mlhost_limits.podman.containers_conf import ConfError

R = "[crio.runtime]\n"
LATER = f"{DROP_INS}/zz"
POLICY = ContainerPolicy({"nofile": Limit(900, 1000)}, tasks=500)
HARD = Requirement("new-container:crio", "nofile", "hard", 1000)
TASKS = Requirement("new-container:crio", "tasks", "value", 500)
START = Requirement("new-container:crio", "start", "value", exact="a container that starts")
ENOUGH = f'{R}default_ulimits = ["nofile=900:1000"]\n'


def gather(files: dict[str, str], **more: object) -> CrioFacts:
    facts = CrioFacts((), 1048576)._replace(**more)
    try:
        return facts._replace(stated=read_all(files))
    except ConfError as error:
        return facts._replace(broken=error)


def find(files: dict[str, str], wanted: Requirement = HARD, **more: object) -> Cause:
    (cause,) = find_crio_causes(wanted, gather(files, **more), POLICY)
    return cause


@pytest.mark.parametrize(
    ("files", "code", "line", "fix"),
    [
        ({MAIN: f'{R}default_ulimits = ["nofile=5"]\n'}, "crio-conf-line", f"{MAIN}:2",
         "make it nofile=900:1000, and restart crio"),
        ({MAIN: ENOUGH, LATER: f"{R}default_ulimits = []\n"}, "crio-list-replaced", f"{LATER}:2",
         "add nofile=900:1000 to that list, and restart crio"),
        ({LATER: f'{R}default_ulimits = ["core=0"]\n'}, "crio-not-stated", "",
         "add nofile=900:1000 to that list, and restart crio"),
        ({}, "crio-not-stated", "",
         f"state it: nofile=900:1000 in {DROP_INS}/95-limits.conf, and restart crio"),
        ({MAIN: "x = ["}, "crio-conf-unreadable", f"{MAIN}:1",
         "make it what crio.conf(5) accepts, or take the line out"),
    ],
)  # fmt: skip
def test_a_limit(files: dict[str, str], code: str, line: str, fix: str) -> None:
    cause = find(files)
    assert (cause.code, cause.at.place if cause.at else "", cause.remedy.text) == (code, line, fix)
    restart = ("systemctl", "restart", "crio.service")
    assert cause.remedy.commands[-1:] == ((restart,) if "restart" in fix else ())
    assert foresee(HARD, gather(files)) in ("fail", "")


@pytest.mark.parametrize(("item", "entry"), [("nofile", "500:500"), ("core", "500:500")])
def test_a_limit_that_is_only_bounded_above_is_stated_as_that_bound(item: str, entry: str) -> None:
    """Of nofile a container needs some: 0 is never stated because nothing is asked of it."""
    few = Requirement("new-container:crio", item, "hard", None, 500)
    policy = ContainerPolicy({item: Limit(max=500)})
    (cause,) = find_crio_causes(few, gather({}), policy)
    assert cause.remedy.text.startswith(f"state it: {item}={entry} in ")


def test_a_file_in_the_way_of_another_is_shown() -> None:
    cause = find({MAIN: ENOUGH, LATER: f'{R}default_ulimits = ["nofile=5"]\n'})
    assert [one.place for one in cause.shadows] == [f"{MAIN}:2"]


def test_tasks() -> None:
    cause = find({MAIN: f"{R}pids_limit = 9\n"}, TASKS)
    assert cause.text == f'{MAIN}:2 "pids_limit = 9" bounds containers to 9 processes and threads'
    assert cause.remedy.text == "make it pids_limit = 500, and restart crio"
    assert [foresee(TASKS, gather({MAIN: R + text})) for text in ("", "pids_limit = 0")] == [
        "pass", ""
    ]  # fmt: skip
    inline = find({MAIN: "[crio]\nruntime = {pids_limit = 9}\n"}, TASKS)
    assert inline.remedy.commands == ()


def test_an_option_counts_and_no_file() -> None:
    options = {"default-ulimits": "--default-ulimits=nofile=5", "pids-limit": "--pids-limit=5"}
    for wanted, word in ((HARD, "--default-ulimits=nofile=5"), (TASKS, "--pids-limit=5")):
        cause = find({MAIN: ENOUGH}, wanted, options=options)
        assert (cause.code, word in cause.text) == ("crio-option", True)


def test_a_crio_that_is_older_than_its_files() -> None:
    assert find({MAIN: ENOUGH}, since="noon").code == "crio-not-restarted"
    assert find_crio_causes(HARD, gather({MAIN: ENOUGH}), POLICY) == ()


@pytest.mark.parametrize(
    ("entry", "more", "told", "fix"),
    [
        ("nofile=5:2000000", {}, "nofile 2000000 is above fs.nr_open, 1048576", "nofile=900:1000"),
        ("memlock=-1", {"ceilings": {"memlock": Rlimit(65536, 65536)}},
         "memlock unlimited is above crio's own hard limit, 64KiB, which it may not raise", "memlock=65536:65536"),
    ],
)  # fmt: skip
def test_no_container_starts(entry: str, more: dict[str, object], told: str, fix: str) -> None:
    files = {MAIN: f'{R}default_ulimits = ["{entry}"]\n'}
    cause = find(files, START, **more)
    assert (cause.code, told in cause.text) == ("crio-above-ceiling", True)
    assert cause.remedy.text == f"make it {fix}, and restart crio"
    assert [foresee(one, gather(files, **more)) for one in (START, HARD)] == ["fail", "fail"]
    assert foresee(START, gather({MAIN: ENOUGH})) == "pass"
