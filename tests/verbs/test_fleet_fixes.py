# SPDX-License-Identifier: GPL-3.0-or-later
"""What to fix first: each fix once, the hosts that it makes green, and the command that does it."""

from __future__ import annotations

import json
import shlex

import pytest
from mlhost_limits.audit_words import describe_fixes
from mlhost_limits.fleet import read_host
from mlhost_limits.fleet_commands import format_command, join_commands, list_groups
from mlhost_limits.fleet_fixes import AGAIN, EDIT, NEVER, find_cost, plan_fixes
from mlhost_limits.fleet_formats import ALONE
from mlhost_limits.fleet_view import Fleet

LINE = {"file": "/etc/security/limits.d/95.conf", "line": 3, "text": "* soft nofile 1024"}


def blame(
    code: str = "a", fix: str = "edit it", then: str = "", *commands: str, at: object = None
) -> dict[str, object]:
    remedy = {"text": fix, "then": then, "commands": [["sh", "-c", one] for one in commands]}
    return {"code": code, "text": f"{code} is wrong", "at": at, "remedy": remedy}


STATED = [blame("sysctl-not-stated", "state it"), blame("pam-not-stated", "state it")]
CHEAP, LOGIN = blame("cheap", "x", "", "cheap"), blame("login", "x", "log in again", "login")
DOCKER, BOOT = blame("docker", "x", "restart dockerd"), blame("boot", "x", "restart the host")


def gather(*hosts: list[dict[str, object]], status: str = "fail", **more: object) -> Fleet:
    """Return a fleet; each host is the causes of its findings, one each."""
    fleet = Fleet()
    for number, causes in enumerate(hosts):
        findings = [
            {"status": status, "place": "kernel", "item": str(one["code"]), **more, "causes": [one]}
            for one in causes
        ]
        met = {"status": "pass", "place": "kernel", "item": "b"}
        fleet.add(read_host(f"h{number}", {"findings": [*findings, met]}, ("all1",)))
    return fleet


def tell(fleet: Fleet) -> list[tuple[str, tuple[int, ...], int, int]]:
    """Return each fix by its kind, or its first cause, with its hosts and what it makes green."""
    told = []
    for fix in plan_fixes(fleet).fixes:
        name = fix.kind if fix.kind != EDIT else fleet.groups[fix.groups[0]].code
        told.append((name, fix.hosts, fix.alone, fix.together))
    return told


@pytest.mark.parametrize(
    ("remedy", "cost"),
    [
        ({}, "at once"),
        ({"text": "raise fs.nr_open, now and at boot", "commands": [["sysctl", "-w"]]}, "at once"),
        ({"then": "log in again"}, "anew"),
        ({"then": "the next job has it"}, "anew"),
        ({"then": "something that nobody foresaw"}, "anew"),
        ({"commands": [["systemctl", "restart", "sshd.service"]]}, "restart"),
        ({"then": "restart dockerd"}, "ends work"),
        ({"commands": [["docker", "restart", "trainer"]]}, "ends work"),
        ({"text": "create it anew with --shm-size=1g"}, "ends work"),
        ({"then": "start what it ran again"}, "ends work"),
        ({"then": "restart the host"}, "reboot"),
        ({"commands": ["reboot"]}, "reboot"),
        ({"commands": "no list"}, "at once"),
    ],
)
def test_the_cost_is_read_from_what_must_come_after(remedy: dict[str, object], cost: str) -> None:
    assert find_cost([remedy]) == cost
    assert find_cost([{}, remedy, {}]) == cost


def test_of_fixes_for_as_many_hosts_the_cheapest_is_first() -> None:
    fleet = gather([BOOT], [DOCKER], [LOGIN], [CHEAP])
    assert [name for name, *_rest in tell(fleet)] == ["cheap", "login", "docker", "boot"]


def test_a_dear_fix_of_many_hosts_comes_before_a_cheap_one_of_one() -> None:
    fleet = gather([CHEAP], *([BOOT] for _host in range(17)))
    assert [name for name, *_rest in tell(fleet)] == ["boot", "cheap"]


def test_hosts_that_lack_much_else_count_less_than_those_that_lack_nothing_else() -> None:
    others = [blame(letter, "x", "", letter) for letter in "pqr"]
    fleet = gather(*([CHEAP, one] for one in others), [blame("alone")], [blame("alone")])
    assert tell(fleet)[0] == ("alone", (3, 4), 2, 2)


def test_a_fix_says_what_it_makes_green_alone_and_with_those_above() -> None:
    fleet = gather([CHEAP], [CHEAP], [CHEAP, LOGIN], [LOGIN], [])
    plan = plan_fixes(fleet)
    assert tell(fleet) == [("cheap", (0, 1, 2), 2, 2), ("login", (2, 3), 1, 4)]
    assert (plan.needy, plan.green, plan.stuck, plan.left) == ((0, 1, 2, 3), 4, (), 0)


def test_hosts_that_were_never_provisioned_are_one_fix() -> None:
    fleet = gather(STATED, STATED, [STATED[0]], [*STATED, LOGIN])
    assert plan_fixes(fleet).never == (0, 1, 3)
    assert tell(fleet)[:2] == [(NEVER, (0, 1, 3), 2, 2), (AGAIN, (2,), 1, 3)]


def test_a_host_that_lacks_more_than_what_nobody_states_has_been_provisioned() -> None:
    assert plan_fixes(gather([*STATED, CHEAP])).never == (0,)
    assert plan_fixes(gather([*STATED, CHEAP, LOGIN])).never == ()


@pytest.mark.parametrize(
    "ours",
    [
        blame("pam-user-beats", "x", at={"file": "/etc/security/limits.d/90-mlhost.conf"}),
        {**blame("x"), "shadows": [{"file": "/etc/sysctl.d/90-mlhost.conf"}]},
        {**blame("y"), "text": "it has run since before /etc/sysctl.d/90-mlhost.conf"},
    ],
)
def test_a_host_with_a_file_of_ours_has_been_provisioned(ours: dict[str, object]) -> None:
    fleet = gather([*STATED, ours])
    assert plan_fixes(fleet).never == ()
    assert tell(fleet)[0][0] == AGAIN


def test_causes_with_the_same_commands_are_one_fix() -> None:
    one, two = blame("a", "x", "", "restart it"), blame("b", "x", "", "restart it")
    assert tell(gather([one, two], [one])) == [("a", (0, 1), 2, 2)]
    assert len(tell(gather([blame("a"), blame("b")]))) == 2
    varied = [blame("a", "x", "", "kill 7")], [blame("a", "x", "", "kill 9")]
    assert len(tell(gather(*varied, [blame("b", "x", "", "kill 7")]))) == 2


NONE = {**blame("x", at=LINE), "remedy": {}}
SAME = blame("x", "mend it", "", "a", at=LINE)
THEN = blame("x", "mend it", "restart the host", "a", at=LINE)
OTHER = blame("x", "mend it", "restart the host", "b", at=LINE)
WORD = blame("x", "mend it, and reboot", "", "a", at=LINE)


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        (SAME, THEN, {("at once", (), "a"), ("reboot", ("restart the host",), "a")}),
        (SAME, OTHER, {("at once", (), "a"), ("reboot", ("restart the host",), "b")}),
        (SAME, WORD, {("at once", (), "a"), ("reboot", (), "a")}),
        (NONE, THEN, {("reboot", ("restart the host",), "a")}),
        (NONE, SAME, {("at once", (), "a")}),
    ],
)
def test_what_a_fix_costs_a_host_is_what_it_says_itself_whoever_is_read_first(
    one: dict[str, object], two: dict[str, object], told: set[object]
) -> None:
    for hosts in ([one], [two]), ([two], [one]):
        fleet = gather(*hosts)
        assert len(fleet.groups) == 1
        fixes = plan_fixes(fleet).fixes
        assert {
            (fix.cost, fix.then, join_commands(fix.remedy["commands"])) for fix in fixes
        } == told
        for fix in fixes:
            (host,) = fix.hosts
            (cause,) = hosts[host]
            assert (fix.remedy, fix.varies) == (cause["remedy"], False)


def test_each_fix_of_one_cause_has_an_address_of_its_own() -> None:
    fleet = gather([SAME], [THEN])
    plan = plan_fixes(fleet)
    assert len({one["id"] for one in describe_fixes(fleet, plan, ALONE)}) == 2


def test_a_shortfall_without_a_known_fix_leaves_its_host_red() -> None:
    fleet = gather([CHEAP], [CHEAP, {"code": "odd", "text": "odd"}])
    plan = plan_fixes(fleet)
    assert tell(fleet) == [("cheap", (0, 1), 1, 1)]
    assert (plan.green, plan.stuck) == (1, (1,))
    assert plan_fixes(gather([{"code": "odd", "text": "odd"}])).fixes == ()


@pytest.mark.parametrize("status", ["unknown", "waived", "pass"])
def test_what_does_not_fall_short_needs_no_fix(status: str) -> None:
    assert plan_fixes(gather([CHEAP], status=status)).needy == ()


def test_what_fails_after_a_boot_needs_its_fix_now() -> None:
    fleet = gather([CHEAP], status="pass", after_boot="fail")
    assert tell(fleet) == [("cheap", (0,), 1, 1)]


def test_values_that_were_not_seen_stay_unknown() -> None:
    fleet = gather([CHEAP], [CHEAP])
    fleet.add(
        read_host(
            "c",
            {
                "findings": [
                    {"status": "fail", "item": "a", "causes": [CHEAP]},
                    {"status": "unknown", "item": "b", "reason": "no Docker"},
                ]
            },
        )
    )
    assert plan_fixes(fleet).unseen == (2,)


def test_a_fleet_without_a_pattern_is_cut() -> None:
    fleet = gather(*([blame("a", "x", "", str(number))] for number in range(60)))
    assert all(group.varies for group in fleet.groups)  # One cause, with commands of its own each.
    fleet = gather(*([blame(chr(65 + number), "x", "", str(number))] for number in range(60)))
    plan = plan_fixes(fleet)
    assert (len(plan.fixes), plan.left, plan.green) == (50, 10, 50)


def command(fleet: Fleet, *inventory: str, groups: tuple[str, ...] = ()) -> str:
    """Return the command of the first fix."""
    fix = plan_fixes(fleet).fixes[0]
    told: str = format_command(fleet, fix, list_groups(fleet, groups), inventory)
    return told


def test_hosts_are_provisioned_by_the_playbook_with_a_limit() -> None:
    fleet = gather(STATED, [], STATED)
    assert command(fleet) == "ansible-playbook mlhost.limits.provision --limit h0,h2"
    assert command(fleet, "/srv/my hosts").endswith("-i '/srv/my hosts' --limit h0,h2")


def test_a_limit_names_the_group_that_the_hosts_are_where_all_of_it_was_asked() -> None:
    fleet = gather(STATED, STATED)
    assert command(fleet, groups=("all1",)).endswith("--limit all1")
    assert command(fleet).endswith("--limit h0,h1")
    assert command(gather(STATED, STATED, []), groups=("all1",)).endswith("--limit h0,h1")


def test_many_hosts_are_in_a_file() -> None:
    fleet = gather([], *(STATED for _host in range(51)))
    assert command(fleet).endswith("--limit @hosts.txt")
    assert command(gather([], *(STATED for _host in range(50)))).endswith(",h49,h50")


def test_an_edit_is_run_by_ansible_as_it_is_printed() -> None:
    script = "sed -i '3s/^/# /' \"$f\" # it's"
    fleet = gather([blame("a", "x", "", script)], [])
    words = shlex.split(command(fleet))
    assert words[:4] == ["ansible", "all", "--limit", "h0"]
    assert json.loads(words[-1]) == {"cmd": script}


@pytest.mark.parametrize("text", ["echo {{ 1 }}", "{% if %}", "{# a #}", "a\nb"])
def test_what_ansible_would_take_for_a_template_is_not_given_to_it(text: str) -> None:
    assert command(gather([blame("a", "x", "", text)], [])) == ""


def test_commands_that_differ_from_host_to_host_are_not_given_to_all() -> None:
    fleet = gather([blame("a", "x", "", "kill 7")], [blame("a", "x", "", "kill 9")], [])
    assert len(fleet.groups) == 1
    assert command(fleet) == ""


@pytest.mark.parametrize(
    "name", ["all:!b", "~x", "@/etc/passwd", "a,b", "*", "-x", "a b", "[x]", ""]
)
def test_a_name_that_means_something_else_in_a_limit_is_in_no_command(name: str) -> None:
    fleet = gather([])
    fleet.add(read_host(name, {"findings": [{"status": "fail", "item": "a", "causes": [CHEAP]}]}))
    assert command(fleet) == ""


@pytest.mark.parametrize("name", ["gpu-1.example", "10.0.0.1", "fe80::1", "node_7"])
def test_a_plain_name_is(name: str) -> None:
    fleet = gather([])
    fleet.add(read_host(name, {"findings": [{"status": "fail", "item": "a", "causes": [CHEAP]}]}))
    assert f"--limit {name} " in command(fleet)


def test_commands_are_joined_so_that_the_first_that_fails_ends_them() -> None:
    assert join_commands([["echo", "a b"]]) == "echo 'a b'"
    assert join_commands([["sh", "-c", "a || b"], ["c"]]) == "{ a || b; } && { c; }"
    assert join_commands(None) == ""
