# SPDX-License-Identifier: GPL-3.0-or-later
"""What the place of CRI-O answers, and the words of its causes."""

from __future__ import annotations

from typing import Any

import pytest
from mlhost_limits.containers.policy import ContainerPolicy
from mlhost_limits.core.finding import Requirement
from mlhost_limits.core.policy import CheckOptions
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.crio import check, explain
from mlhost_limits.crio.causes import CrioFacts, describe_excess, find_crio_causes
from mlhost_limits.crio.crio_conf import MAIN, read_all, read_conf
from mlhost_limits.crio.place import Crio
from mlhost_limits.host.look import Look
from mlhost_limits.podman.containers_conf import ConfError

R = "[crio.runtime]\n"
LATER = f"{MAIN}.d/zz"
NR_OPEN = 1048576
START = Requirement("new-container:crio", "start", "value", exact="a container that starts")


def facts(files: dict[str, str], **more: Any) -> CrioFacts:
    return CrioFacts(read_all(files), NR_OPEN)._replace(**more)


@pytest.mark.parametrize(("kind", "name", "called"), [
    ("new-container", "crio", True), ("container", "crio", False), ("new-container", "podman", False)
])  # fmt: skip
def test_only_a_new_container_is_explained(
    monkeypatch: pytest.MonkeyPatch, kind: str, name: str, called: bool
) -> None:
    monkeypatch.setattr(explain, "trace_crio", lambda item, _look: [item])
    assert Crio().explain(kind, name, "nofile", Look()) == (["nofile"] if called else None)


def test_what_it_checks_and_of_which_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    ((name, codes),) = Crio().codes()
    assert (name, "crio-conf-line" in codes) == ("new-container:crio", True)
    monkeypatch.setattr(check, "check_crio", lambda *words: words)
    problems: list[str] = []
    asked = Crio().read_policy({"tasks": 5}, problems)
    assert (asked, problems) == (ContainerPolicy({}, tasks=5), [])
    assert asked
    found: Any = Crio().check(asked, CheckOptions(), Look())
    assert found[0] == asked


@pytest.mark.parametrize(
    ("item", "hard"), [("nofile", str(NR_OPEN)), ("memlock", "-1"), ("core", "-1")]
)
def test_a_hard_limit_of_which_nothing_is_asked_is_the_highest(item: str, hard: str) -> None:
    policy = ContainerPolicy({item: Limit(soft=4096)})
    wanted = Requirement("new-container:crio", item, "soft", 4096)
    (cause,) = find_crio_causes(wanted, facts({}), policy)
    assert cause.remedy.text.startswith(f"state it: {item}=4096:{hard} in ")


@pytest.mark.parametrize(
    ("entry", "ceilings", "made"),
    [
        ("nofile=5:2000000", {"nofile": Rlimit(4096, 4096)}, "nofile=5:4096"),
        ("nofile=5:2000000", {"nofile": Rlimit(UNLIMITED, UNLIMITED)}, f"nofile=5:{NR_OPEN}"),
        ("memlock=5:2000000", {"memlock": Rlimit(1999999, 1999999)}, "memlock=5:1999999"),
        ("core=5:2000000", {"core": Rlimit(1999999, 1999999)}, "core=5:1999999"),
    ],
)
def test_what_no_container_starts_with_is_made_the_most_that_may_be(
    entry: str, ceilings: dict[str, Rlimit], made: str
) -> None:
    """fs.nr_open bounds descriptors and nothing else."""
    files = {MAIN: f'{R}default_ulimits = ["{entry}"]\n'}
    (cause,) = find_crio_causes(START, facts(files, ceilings=ceilings), ContainerPolicy({}))
    assert cause.remedy.text == f"make it {made}, and restart crio"


@pytest.mark.parametrize(
    ("hard", "told"), [(NR_OPEN + 1, "fs.nr_open"), (NR_OPEN, "own hard limit")]
)
def test_of_two_ceilings_the_one_that_is_passed_is_told(hard: int, told: str) -> None:
    seen = facts(
        {MAIN: f'{R}default_ulimits = ["nofile=5:{hard}"]\n'}, ceilings={"nofile": Rlimit(9, 9)}
    )
    assert told in describe_excess(seen.defaults.ulimits["nofile"], seen)


def test_a_list_that_hides_another_limit_is_not_blamed() -> None:
    files = {MAIN: f'{R}default_ulimits = ["memlock=-1"]\n', LATER: f"{R}default_ulimits = []\n"}
    wanted = Requirement("new-container:crio", "nofile", "soft", 900)
    policy = ContainerPolicy({"nofile": Limit(900, 1000)})
    (cause,) = find_crio_causes(wanted, facts(files), policy)
    assert (cause.code, cause.shadows) == ("crio-not-stated", ())


@pytest.mark.parametrize(
    ("text", "told"),
    [("x = [", f'{MAIN}:1 "x = [": no value'), ("x = 'caf\xe9'", f"{MAIN}: is not UTF-8")],
)
def test_a_file_that_cannot_be_read_is_cited(text: str, told: str) -> None:
    with pytest.raises(ConfError) as caught:
        read_conf(MAIN, text)
    (cause,) = find_crio_causes(
        START, CrioFacts((), NR_OPEN, broken=caught.value), ContainerPolicy({})
    )
    assert cause.text == told
