# SPDX-License-Identifier: GPL-3.0-or-later
"""The section of services is read whole, and all that is wrong with it is said at once."""

from __future__ import annotations

import pytest
from mlhost_limits.core.reader import Limit, PolicyError
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.schema import load_policy
from mlhost_limits.services.lockouts import LEAST_TASKS, find_service_lockouts
from mlhost_limits.services.policy import ServicesPolicy, UnitRule, find_rule
from mlhost_limits.sessions.lockouts import FLOORS

ALL = UnitRule({"memlock": Limit(UNLIMITED, UNLIMITED)}, 32768)


def load(services: object) -> ServicesPolicy | None:
    return load_policy({"services": services}, "none").get("services")


def refusals(services: object) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load(services)
    return list(caught.value.problems)


def test_every_key_is_read() -> None:
    rule = {"memlock": "unlimited", "tasks": 32768}
    nofile = {"nofile": {"soft": 1024, "hard": 4096, "max": 65536}, "tasks": "unlimited"}
    units = {"slurmd.service": nofile, "user-.slice": {"tasks": 9}}
    wanted = {"default": rule, "user_default": rule, "units": units}
    assert load({**wanted, "logind": {"remove_ipc": False}}) == ServicesPolicy(
        ALL,
        ALL,
        {
            "slurmd.service": UnitRule({"nofile": Limit(1024, 4096, 65536)}, UNLIMITED),
            "user-.slice": UnitRule({}, 9),
        },
        False,
    )


@pytest.mark.parametrize("raw", [{}, {"units": {}}, {"logind": {}}])
def test_a_section_that_asks_nothing_is_none(raw: object) -> None:
    policy = load_policy({"kernel": {"fs.nr_open": 64}, "services": raw}, "none")
    assert policy.get("services") is None


@pytest.mark.parametrize(
    "name",
    [
        *("a.service", "a@.service", "a@b.service", "user@1000.service", "a-.service"),
        *("user-.slice", "-.slice", r"dev-sda\x2d1.service", "a:b_c.d.service"),
    ],
)
def test_names_of_units(name: str) -> None:
    policy = load({"units": {name: {"tasks": 100}}})
    assert policy is not None
    assert list(policy.units) == [name]


KIND = "is not a unit; accepted are NAME.service, NAME@.service, NAME.slice"
OTHER = "starts no processes of its own; name the service that it starts"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("slurmd", f"'slurmd' {KIND}"),
        (7, f"7 {KIND}"),
        ("../x.service", f"'../x.service' {KIND}"),
        ("a/b.service", f"'a/b.service' {KIND}"),
        ("a b.service", f"'a b.service' {KIND}"),
        ("a\n.service", f"'a\\n.service' {KIND}"),
        (".service", f"'.service' {KIND}"),
        ("@.service", f"'@.service' {KIND}"),
        ("%i.service", f"'%i.service' {KIND}"),
        ("sshd.socket", OTHER),
        ("backup.timer", OTHER),
        ("session-3.scope", OTHER),
        ("multi-user.target", OTHER),
    ],
)
def test_names_that_are_refused(name: object, reason: str) -> None:
    shown = str(name).replace("\n", "?")
    assert refusals({"units": {name: {"tasks": 1}}}) == [f"services.units.{shown}: {reason}"]


def test_every_name_that_is_refused_is_told() -> None:
    names = [line.split()[1] for line in refusals({"units": {"x": {}, "a.timer": {}, "y": {}}})]
    assert names == ["'x'", "starts", "'y'"]


def unit(rule: object) -> object:
    return {"units": {"x.service": rule}}


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ([], "services: a list was given; a mapping is accepted"),
        ({"defaults": {}}, "services.defaults: is unknown; accepted are default, user_default, units, logind"),
        ({"units": []}, "services.units: a list was given; a mapping is accepted"),
        ({"default": {}}, "services.default: is empty, so nothing would be required"),
        ({"default": 1}, "services.default: 1 was given; a mapping is accepted"),
        (unit({"nofile": {"soft": 5}}), "services.units.x.service.nofile: systemd needs soft and hard, or one value"),
        (unit({"nofile": {"hard": 5}}), "services.units.x.service.nofile: systemd needs soft and hard, or one value"),
        (unit({"nofile": "unlimited"}), "services.units.x.service.nofile: 'unlimited' is above fs.nr_open, so the kernel refuses it and systemd gives what it has itself; a number is accepted"),
        (unit({"tasks": 0}), "services.units.x.service.tasks: 0 means nothing to systemd; a number above 0 is accepted"),
        (unit({"tasks": "33%"}), "services.units.x.service.tasks: '33%' is not a limit: accepted are a whole number or 'unlimited'"),
        ({"units": {"a.slice": {"nofile": 5}}}, "services.units.a.slice: a slice has no nofile; of it only tasks is accepted"),
        ({"logind": {"remove_ipc": "no"}}, "services.logind.remove_ipc: 'no' was given; true or false"),
        ({"logind": {"RemoveIPC": False}}, "services.logind.RemoveIPC: is unknown; accepted are remove_ipc"),
    ],
)  # fmt: skip
def test_what_is_refused(raw: object, problem: str) -> None:
    assert refusals(raw) == [problem]


def test_an_unknown_item_is_refused_with_all_that_are_known() -> None:
    (problem,) = refusals(unit({"maxlogins": 1}))
    assert problem.startswith("services.units.x.service.maxlogins: is unknown; accepted are cpu,")
    assert problem.endswith(", rttime, tasks")


def lockouts(**rules: object) -> list[str]:
    policy = load(rules)
    assert policy is not None
    return list(find_service_lockouts(policy))


@pytest.mark.parametrize("place", ["default", "user_default", "units.ssh.service"])
def test_what_would_lock_the_host_is_named(place: str) -> None:
    rule = {"nofile": 10, "tasks": 10, "memlock": 0, "fsize": "1GiB"}
    name, dot, rest = place.partition(".")
    found = lockouts(**{name: {rest: rule} if dot else rule})
    assert found == [
        f"services.{place}.nofile: 10 is too little for what logins need: sshd ends a login that"
        " has fewer than 14; 64 or more is accepted",
        f"services.{place}.tasks: 10 is too little for what logins need: a login through ssh takes"
        " 5 tasks, and each thread is one; 64 or more is accepted",
    ]


@pytest.mark.parametrize("name", ["trainer.service", "mine.slice"])
def test_other_units_may_have_as_little_as_they_like(name: str) -> None:
    assert not lockouts(units={name: {"tasks": 1}})


@pytest.mark.parametrize(
    "name",
    ["sshd@.service", "user@1000.service", "systemd-logind.service", "user-.slice", "-.slice"],
)
def test_units_that_logins_need(name: str) -> None:
    assert len(lockouts(units={name: {"tasks": 1}})) == 1


def test_the_least_that_logins_need_is_enough() -> None:
    rule = {"nofile": FLOORS["nofile"].least, "tasks": LEAST_TASKS}
    assert not lockouts(default=rule, units={"ssh.service": rule})
    few = {"nofile": FLOORS["nofile"].least - 1, "tasks": LEAST_TASKS - 1}
    assert len(lockouts(units={"ssh.service": few})) == 2


def test_a_time_limit_for_all_services_is_one_for_sshd() -> None:
    (problem,) = lockouts(default={"cpu": "2h"})
    assert problem == "services.default.cpu: ends every service in time, sshd too; name the units"
    assert not lockouts(default={"cpu": "unlimited"})


WIDE, NARROW = {"nofile": Limit(1, 2), "core": Limit(0, 0)}, {"nofile": Limit(3, 4)}
UNITS = {
    "w-.service": UnitRule({}, 7),
    "w-x@1.service": UnitRule(NARROW),
    "w-x@.service": UnitRule(WIDE, 9),
    "ssh.service": UnitRule(NARROW),
}


@pytest.mark.parametrize(
    ("name", "owner", "rule"),
    [
        ("w-x@1.service", "w-x@1.service", UnitRule({**WIDE, **NARROW}, 9)),
        ("w-x@2.service", "w-x@.service", UnitRule(WIDE, 9)),
        ("w-y.service", "w-.service", UnitRule({}, 7)),
        ("sshd.service", "ssh.service", UnitRule(NARROW)),
    ],
)
def test_the_narrowest_name_counts_most(name: str, owner: str, rule: UnitRule) -> None:
    assert find_rule(UNITS, name, owner) == rule
