# SPDX-License-Identifier: GPL-3.0-or-later
"""``plan`` chooses the cheapest fixes for so many hosts, and puts the hosts in waves."""

from __future__ import annotations

import itertools
import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from mlhost_limits import cli, fleet_choice
from mlhost_limits.fleet_choice import CHANGE, choose_fixes
from mlhost_limits.fleet_closure import find_closure
from mlhost_limits.fleet_fixes import COSTS, Fix
from mlhost_limits.fleet_waves import plan_waves

Lacking = dict[int, frozenset[int]]


def make_fixes(costs: list[str]) -> list[Fix]:
    return [Fix("edit", (number,), cost, (), ()) for number, cost in enumerate(costs)]


def weigh(fixes: list[Fix], lacking: Lacking, chosen: set[int], wanted: int) -> int | None:
    """Return what fixes weigh with the cheapest hosts that they make green, by its definition."""
    costs = sorted(
        max(COSTS[fixes[one].cost] for one in mine) for mine in lacking.values() if mine <= chosen
    )
    return CHANGE * len(chosen) + sum(costs[:wanted]) if len(costs) >= wanted else None


def find_least(fixes: list[Fix], lacking: Lacking, wanted: int) -> int:
    """Return the least weight of all sets of fixes there are."""
    sets = (
        set(some)
        for count in range(len(fixes) + 1)
        for some in itertools.combinations(range(len(fixes)), count)
    )
    weights = (weigh(fixes, lacking, some, wanted) for some in sets)
    return min(one for one in weights if one is not None)


@pytest.mark.parametrize("seed", range(40))
def test_the_choice_is_the_best_of_all_or_five_percent_above(seed: int) -> None:
    dice = random.Random(seed)
    fixes = make_fixes(dice.choices(list(COSTS), k=9))
    lacking = {
        host: frozenset(dice.sample(range(9), dice.randint(1, 4)))
        for host in range(dice.choice((9, 90)))
    }
    wanted = dice.randint(0, len(lacking))
    choice = choose_fixes(fixes, lacking, wanted)
    least = find_least(fixes, lacking, wanted)
    assert choice.least <= least <= choice.weight <= 1.05 * least
    assert len(choice.hosts) == wanted
    lacked = {one for host in choice.hosts for one in lacking[host]}
    assert set(choice.fixes) == lacked
    assert weigh(fixes, {host: lacking[host] for host in choice.hosts}, lacked, wanted) is not None


@pytest.mark.parametrize("seed", range(60))
def test_the_cut_is_the_best_for_its_price(seed: int) -> None:
    dice = random.Random(seed)
    patterns = [
        (dice.randrange(1, 64), dice.randint(1, 9), dice.choice((1, 2, 4, 8, 16)))
        for _pattern in range(dice.randint(1, 14))
    ]
    price, per = dice.randint(1, 200), dice.randint(1, 9)

    def value(chosen: int) -> int:
        able = [(count, cost) for mask, count, cost in patterns if not mask & ~chosen]
        worth = sum(max(0, count * (price - cost * per)) for count, cost in able)
        return int(worth - CHANGE * per * bin(chosen).count("1"))

    found = find_closure(patterns, 6, CHANGE, price, per)
    assert value(found) == max(map(value, range(64)))


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_set_of_fixes_is_found_or_a_better_one(
    seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of 1,000 hosts lack some of 12 causes of 50 that cost little; the others lack others."""
    dice = random.Random(seed)
    good = set(dice.sample(range(50), 12))
    rest = sorted(set(range(50)) - good)
    fixes = make_fixes(["at once" if number in good else "reboot" for number in range(50)])
    lacking = {
        host: frozenset(
            dice.sample(sorted(good), dice.randint(1, 6))
            if host % 2
            else [*dice.sample(rest, dice.randint(1, 5)), *dice.sample(sorted(good), 2)]
        )
        for host in range(1000)
    }
    choice = choose_fixes(fixes, lacking, 500)
    planted = CHANGE * 12 + 500
    with capsys.disabled():
        print(f" planted {planted}, found {choice.weight}, least {choice.least}", end="")
    assert choice.weight <= 1.05 * planted
    assert choice.least <= choice.weight


def test_a_search_ends_when_it_has_looked_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_choice, "_MOST_CHECKS", 0)
    dice = random.Random(1)
    lacking = {host: frozenset(dice.sample(range(50), 3)) for host in range(300)}
    assert len(choose_fixes(make_fixes(["anew"] * 50), lacking, 100).hosts) == 100


def test_where_all_are_wanted_there_is_nothing_to_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where each host has a fix of its own, of which the search would look at every pair."""
    monkeypatch.setattr(fleet_choice, "find_closure", lambda *_words: pytest.fail("it searched"))
    lacking = {host: frozenset((host,)) for host in range(500)}
    choice = choose_fixes(make_fixes(["anew"] * 500), lacking, 500)
    assert (len(choice.hosts), choice.weight, choice.least) == (500, 500 * 52, 500 * 52)


def test_a_host_whose_fix_is_not_known_is_never_among_them() -> None:
    fixes = make_fixes(["at once"])
    assert choose_fixes(fixes, {0: frozenset((-1, 0)), 1: frozenset((0,))}, 1).hosts == (1,)
    with pytest.raises(ValueError, match="2 hosts were asked for; known fixes make 1 green"):
        choose_fixes(fixes, {0: frozenset((-1, 0)), 1: frozenset((0,))}, 2)


HOSTS = {f"n{number:03d}": {number % 3} for number in range(100)}
GROUPS = {name: ("gpu", "all") if int(name[1:]) % 2 else ("all",) for name in HOSTS}


@pytest.mark.parametrize("groups", [GROUPS, {}], ids=["grouped", "alone"])
@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_no_batch_has_more_of_a_group_than_it_may(
    groups: dict[str, tuple[str, ...]], at_once: int
) -> None:
    waves = plan_waves(HOSTS, groups, at_once)
    names = [name for wave in waves for batch in wave.batches for name in batch]
    assert sorted(names) == sorted(HOSTS)
    for batch in (batch for wave in waves for batch in wave.batches):
        counts = Counter(group for name in batch for group in groups.get(name, ("",)))
        assert max(counts.values()) <= at_once
    assert len(waves[-1].batches) == -(-sum(map(len, waves[-1].batches)) // at_once)


def test_hosts_of_several_groups_count_in_each() -> None:
    for seed in range(20):
        dice = random.Random(seed)
        groups = {name: tuple(dice.sample("abc", dice.randint(1, 3))) for name in HOSTS}
        for wave in plan_waves(HOSTS, groups, 3):
            for batch in wave.batches:
                assert max(Counter(one for name in batch for one in groups[name]).values()) <= 3


def test_canaries_show_every_fix_in_every_group() -> None:
    canary, *shares = plan_waves(HOSTS, GROUPS, 5)
    names = [name for batch in canary.batches for name in batch]
    assert {(*HOSTS[name], group) for name in names for group in GROUPS[name]} == {
        (fix, group) for fix in range(3) for group in ("gpu", "all")
    }
    assert len(names) == 3
    assert (canary.name, canary.most_failed) == ("canary", 0)
    assert [(one.name, sum(map(len, one.batches))) for one in shares] == [
        ("10 %", 10),
        ("50 %", 39),
        ("100 %", 48),
    ]
    assert [one.most_failed for one in shares] == [0, 0, 0]
    assert plan_waves({}, {}, 1) == []


def put(folder: Path, name: str, *causes: dict[str, object]) -> None:
    findings = [
        {"status": "fail", "place": "kernel", "item": str(one["code"]), "causes": [one]}
        for one in causes
    ] or [{"status": "pass", "place": "kernel", "item": "a"}]
    (folder / f"{name}.json").write_text(json.dumps({"findings": findings}))


def blame(code: str, then: str, command: str) -> dict[str, object]:
    remedy = {"text": f"mend {code}", "then": then, "commands": [["sh", "-c", command]]}
    return {"code": code, "text": f"{code} is wrong", "remedy": remedy}


CHEAP, BOOT = (
    blame("cheap", "", "cheap \x1b[31m\nwave 9  x"),
    blame("boot", "restart the host", "b"),
)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder, "good")
    for number in range(4):
        put(folder, f"a{number}", CHEAP)
    put(folder, "b", BOOT)
    return folder


def test_the_command_prints_what_to_do_and_writes_nothing(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(results.parent.rglob("*"))
    assert cli.main(["plan", "in", "--at-once", "2"]) == 1
    told = capsys.readouterr().out
    assert sorted(results.parent.rglob("*")) == before
    assert "\x1b" not in told
    assert told.splitlines() == [
        "5 of 6 hosts fall short; 5 of them become green",
        "weight 120, at most 0.0 % above the least that is possible",
        "what it costs the hosts: nothing on 4, a reboot on 1",
        "",
        "1  4 hosts: mend cheap",
        "     cheap ?[31m?wave 9  x",
        "",
        "2  1 host: mend boot; then restart the host; drain it first",
        "     b",
        "",
        "wave 1  canary: 2 hosts in 1 batch; stop if more than 0 stay red",
        "wave 2  10 %: 1 host in 1 batch; stop if more than 0 stay red",
        "wave 3  50 %: 1 host in 1 batch; stop if more than 0 stay red",
        "wave 4  100 %: 1 host in 1 batch; stop if more than 0 stay red",
    ]


def test_fewer_hosts_take_the_cheaper_fixes(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for green in ("4", "80%"):
        assert cli.main(["plan", "in", "--green", green, "--json"]) == 1
        plan = json.loads(capsys.readouterr().out)
        assert (plan["green"], plan["costs"]) == (4, {"at once": 4})
        assert [one["text"] for one in plan["fixes"]] == ["mend cheap"]
        assert plan["waves"][0] == {"name": "canary", "batches": [["a0"]], "most_failed": 0}


def test_groups_of_a_file_keep_nodes_apart(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("groups").write_text("a0 gpu*\na1 gpu\na2 cpu\na2 gpu\na3 cpu\nb cpu\n")
    assert cli.main(["plan", "in", "--groups", "groups", "--at-once", "1", "--json"]) == 1
    waves = json.loads(capsys.readouterr().out)["waves"]
    assert waves[0]["batches"] == [["a2"], ["b"]]


def test_names_of_groups_that_are_of_no_host_are_told(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("groups").write_text(
        "\ufeffa0 gpu\n\n  \nx.example gpu\n" + "a1 gpu\na2 gpu\na3 gpu\nb x\n"
    )
    assert cli.main(["plan", "in", "--groups", "groups", "--at-once", "1", "--json"]) == 1
    said = capsys.readouterr()
    told = "--groups: groups names x.example, of which no result was given"
    assert said.err == f"mlhost-limits: {told}\n"
    assert json.loads(said.out)["waves"][0]["batches"] == [["a0", "b"]]
    Path("groups").write_text("".join(f"x{number} gpu\n" for number in range(9)))
    assert cli.main(["plan", "in", "--groups", "groups"]) == 1
    assert "x0, x1, x2, x3, x4 and 4 more, of which" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--green", "٣"], "--green: '٣' was given; a number of hosts, or a share such as 90%"),
        (["--groups", "pipe"], "pipe: is not a regular file\n"),
        (["--green", "6"], "6 hosts were asked for; known fixes make 5 green"),
        (["--green", "x"], "--green: 'x' was given; a number of hosts, or a share such as 90%"),
        (["--green", "101%"], "--green: '101%' was given"),
        (["--at-once", "0"], "--at-once: 0 was given; 1 or more is accepted"),
        (["--groups", "none"], "none: No such file or directory"),
        (["--groups", "bad"], "bad:2: holds 3 words; a host and its group"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(
    results: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad").write_text("a b\na b c\n")
    os.mkfifo("pipe")
    assert cli.main(["plan", "in", *words]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"mlhost-limits: {told}")
    assert (said.err.count("\n"), said.out) == (1, "")


def test_where_all_is_well_there_is_nothing_to_do(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", "in/good.json"]) == 0
    assert capsys.readouterr().out == "0 of 1 hosts fall short; 0 of them become green\n"
    assert cli.main(["plan", "in/none.json"]) == 2
    assert capsys.readouterr().err.endswith("mlhost-limits: no plan was made\n")
