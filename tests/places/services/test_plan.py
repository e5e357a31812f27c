# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for systemd's drop-ins states what the policy asks, says what beats it, and can be
taken back byte for byte."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from mlhost_limits.core.edit import HEADER
from mlhost_limits.core.plan import SectionPlan
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.services.plan import (
    ServicesState,
    apply_texts,
    find_target,
    plan_services,
)
from mlhost_limits.services.policy import ServicesPolicy, UnitRule
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.unit_file import Source

SYSTEM_D, USER_D = "/etc/systemd/system.conf.d", "/etc/systemd/user.conf.d"
LOGIND_D = "/etc/systemd/logind.conf.d"
X_D, RUN_D = "/etc/systemd/system/x.service.d", "/run/systemd/system/x.service.d"
MAIN = Source("/usr/lib/systemd/system/x.service", "[Service]\nExecStart=/bin/x\nLimitNOFILE=9\n")
OURS = "90-mlhost.conf"
RULE = UnitRule({"nofile": Limit(1024, 65536), "memlock": Limit(UNLIMITED, UNLIMITED)}, 500)
POLICY = ServicesPolicy(units={"x.service": RULE})
STATED = f"{HEADER}\n[Service]\nLimitNOFILE=1024:65536\nLimitMEMLOCK=infinity\nTasksMax=500\n"


def state(texts: Mapping[str, str] = {}, main: Source | None = MAIN) -> ServicesState:
    """Return a host with these drop-ins; those below /etc may be edited."""
    sources = [Source(path, text) for path, text in texts.items()]

    def held(*folders: str) -> tuple[Source, ...]:
        return tuple(one for one in sources if one.path.rpartition("/")[0] in folders)

    control = "/etc/systemd/system.control/x.service.d"
    manager = held(SYSTEM_D, "/usr/lib/systemd/system.conf.d")
    files = {
        "x.service": Files(main, held(control, X_D, RUN_D), None, manager),
        "user-.slice": Files(None),
        "y-.service": Files(None),
        "system.conf": Files(None, (), Source("/etc/systemd/system.conf", ""), manager),
        "user.conf": Files(None, (), None, held(USER_D)),
        "logind.conf": Files(None, (), None, held(LOGIND_D)),
    }
    editable = {path: text for path, text in texts.items() if path.startswith("/etc/")}
    return ServicesState(editable, files, 10000)


def run(
    texts: Mapping[str, str] = {}, policy: ServicesPolicy = POLICY, **options: bool
) -> SectionPlan:
    return plan_services(policy, state(texts), 1048576, **options)


def after(texts: Mapping[str, str], planned: SectionPlan) -> dict[str, str]:
    """Return the files of others and ours as they will be."""
    assert not planned.problems
    held = dict(texts)
    for edit in planned.edits:
        assert edit.before == (texts[edit.path].encode() if edit.path in texts else None)
        held.pop(edit.path, None)
        if edit.after is not None:
            held[edit.path] = edit.after.decode()
    return held


def test_each_part_has_a_drop_in_of_its_own() -> None:
    rule = UnitRule({"nofile": Limit(1024, 4096), "core": Limit(max=0)}, UNLIMITED)
    units = {"x.service": RULE, "user-.slice": UnitRule({}, 5000)}
    held = after({}, run(policy=ServicesPolicy(rule, rule, units, False)))
    defaults = f"{HEADER}\n[Manager]\nDefaultLimitNOFILE=1024:4096\nDefaultTasksMax=infinity\n"
    assert held == {
        f"{SYSTEM_D}/{OURS}": defaults,
        f"{USER_D}/{OURS}": defaults,
        f"{X_D}/{OURS}": STATED,
        f"/etc/systemd/system/user-.slice.d/{OURS}": f"{HEADER}\n[Slice]\nTasksMax=5000\n",
        f"{LOGIND_D}/{OURS}": f"{HEADER}\n[Login]\nRemoveIPC=no\n",
    }


def test_a_drop_in_holds_what_it_hides_of_a_wider_one() -> None:
    units = {"y-.service": UnitRule({"core": Limit(0, 0)}, 7), "y-a.service": UnitRule({}, 9)}
    files = {**state().files, "y-a.service": Files(MAIN)}
    planned = plan_services(ServicesPolicy(units=units), state()._replace(files=files), None)
    stated = after({}, planned)[f"/etc/systemd/system/y-a.service.d/{OURS}"]
    assert stated.splitlines()[2:] == ["LimitCORE=0", "TasksMax=9"]


def test_sizes_and_times_are_written_as_systemd_reads_them() -> None:
    limits = {
        "memlock": Limit(65536, 2**30),
        "core": Limit(0, 0),
        "cpu": Limit(60, UNLIMITED),
        "rttime": Limit(200000, 200000),
        "nice": Limit(25, 25),
    }
    (text,) = after({}, run(policy=ServicesPolicy(units={"x.service": UnitRule(limits)}))).values()
    assert text.splitlines()[2:] == [
        "LimitMEMLOCK=64K:1G",
        "LimitCORE=0",
        "LimitCPU=60:infinity",
        "LimitRTTIME=200000",
        "LimitNICE=25",
    ]


def test_a_second_run_changes_nothing() -> None:
    held = after({}, run())
    assert run(held) == SectionPlan()


def test_what_the_policy_does_not_name_any_more_goes() -> None:
    old = "/etc/systemd/system/old.service.d/90-mlhost.conf"
    (edit,) = run({old: STATED, **after({}, run())}).edits
    assert (edit.path, edit.after, edit.with_folder) == (old, None, True)


def test_all_is_given_back() -> None:
    theirs = {f"{X_D}/99-z.conf": "[Service]\nLimitNOFILE=1024\n"}
    held = after(theirs, run(theirs, override=True))
    assert held != theirs
    assert after(held, run(held, absent=True)) == theirs
    assert run(theirs, absent=True) == SectionPlan()


def test_a_file_of_somebody_else_under_our_name_is_left() -> None:
    path = f"{X_D}/{OURS}"
    assert run({path: "[Service]\n"}).problems == (
        f"{path}: was not written by mlhost.limits; rename it first",
    )


def test_what_the_kernel_would_refuse_is_refused() -> None:
    rule = UnitRule({"nofile": Limit(1024, 2000000)})
    policy = ServicesPolicy(rule, UnitRule({"core": Limit(0, 0)}), {"x.service": rule})
    told = (
        "nofile: hard 2000000 is above fs.nr_open 1048576, so systemd would give what it has"
        " itself; lower it or raise kernel.fs.nr_open"
    )
    problems = run(policy=policy).problems
    assert problems == (f"services.default.{told}", f"services.units.x.service.{told}")
    assert not plan_services(policy, state(), None).problems
    only_max = ServicesPolicy(units={"x.service": UnitRule({"nofile": Limit(max=9**9)}, 100)})
    assert not run(policy=only_max).problems


def test_what_would_lock_the_host_is_refused() -> None:
    (problem,) = run(policy=ServicesPolicy(UnitRule({}, 1))).problems
    assert problem.startswith("services.default.tasks: 1 is too little for what logins need")


BEATS = "beats our"


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        (f"{X_D}/99-z.conf", "[Service]\nLimitNOFILE=1024\n", f'99-z.conf:2 "LimitNOFILE=1024" {BEATS} "LimitNOFILE=1024:65536"'),
        (f"{RUN_D}/91.conf", "[Service]\nLimitMEMLOCK=64K\n", f'91.conf:2 "LimitMEMLOCK=64K" {BEATS} "LimitMEMLOCK=infinity"'),
        (f"{X_D}/99-z.conf", "[Service]\nTasksMax=1%\n", f'99-z.conf:2 "TasksMax=1%" {BEATS} "TasksMax=500"'),
        (f"{X_D}/99-z.conf", "[Service]\nTasksMax=\n", f'99-z.conf:2 "TasksMax=" {BEATS} "TasksMax=500"'),
        ("/etc/systemd/system.control/x.service.d/90-mlhost.conf", "[Service]\nLimitMEMLOCK=64K\n", f'"LimitMEMLOCK=64K" {BEATS} "LimitMEMLOCK=infinity"'),
    ],
)  # fmt: skip
def test_a_drop_in_that_beats_ours(path: str, text: str, told: str) -> None:
    planned = run({path: text})
    assert any(told in str(shortfall) for shortfall in planned.shortfalls)
    assert after({path: text}, planned)[path] == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("10-a.conf", "[Service]\nLimitNOFILE=1024\n"),
        ("99-z.conf", "[Service]\nLimitNOFILE=1024:65536\nTasksMax=infinity\n"),
        ("99-z.conf", "[Service]\nTasksMax=6%\nLimitNOFILE=infinity\n"),
        ("99-z.conf", "[Service]\nLimitCORE=0\nLimitNOFILE=64k\n"),
        ("99-z.conf", "[broken\n"),
    ],
)
def test_what_comes_earlier_or_is_enough_beats_nothing(name: str, text: str) -> None:
    assert run({f"{X_D}/{name}": text}).shortfalls == ()


def test_lines_are_made_ineffective_until_ours_counts() -> None:
    theirs = {
        f"{X_D}/98-y.conf": "[Service]\nLimitNOFILE=1\nLimitNOFILE = 2\n",
        f"{X_D}/99-z.conf": "[Service]\nLimitNOFILE=\\\n 3\nLimitCORE=0\n",
        f"{RUN_D}/97-x.conf": "[Service]\nLimitNOFILE=4\n",
    }
    planned = run({k: v for k, v in theirs.items() if "99" not in k}, override=True)
    held = after({k: v for k, v in theirs.items() if "99" not in k}, planned)
    assert held[f"{X_D}/98-y.conf"] == (
        "[Service]\n#mlhost.limits# LimitNOFILE=1\n#mlhost.limits# LimitNOFILE = 2\n"
    )
    told = [(one.foreign.value, one.neutralized) for one in planned.shortfalls]
    assert told == [("2", True), ("1", True), ("4", False)]
    # What goes over two lines is left to a person.
    (only,) = run(theirs, override=True).shortfalls
    assert (only.foreign.line, only.neutralized) == (2, False)


def test_lines_come_back_without_override() -> None:
    theirs = {f"{X_D}/98-y.conf": "[Service]\nLimitNOFILE=1\n"}
    held = after(theirs, run(theirs, override=True))
    assert after(held, run(held))[f"{X_D}/98-y.conf"] == theirs[f"{X_D}/98-y.conf"]
    assert run(held, override=True).edits == ()


DEFAULT = ServicesPolicy(default=UnitRule({"nofile": Limit(1024, 65536)}, 500), remove_ipc=True)


def test_what_beats_the_defaults() -> None:
    theirs = {
        f"{SYSTEM_D}/95-v.conf": "[Manager]\nDefaultLimitNOFILE=9\nDefaultTasksMax=9\n",
        f"{LOGIND_D}/95-v.conf": "[Login]\nRemoveIPC=0\n",
    }
    planned = run(theirs, DEFAULT)
    assert [str(one).partition(" ")[2] for one in planned.shortfalls] == [
        '"DefaultLimitNOFILE=9" beats our "DefaultLimitNOFILE=1024:65536"',
        '"DefaultTasksMax=9" beats our "DefaultTasksMax=500"',
        '"RemoveIPC=0" beats our "RemoveIPC=yes"',
    ]
    held = after(theirs, run(theirs, DEFAULT, override=True))
    assert run(held, DEFAULT, override=True).edits == ()


def test_a_line_at_which_the_manager_gives_up_beats_ours() -> None:
    path = f"{SYSTEM_D}/50-v.conf"
    policy = DEFAULT._replace(remove_ipc=None)
    theirs = {path: "[Manager]\nDefaultLimitNOFILE=9\n[broken\n"}
    planned = run(theirs, policy)
    assert {str(one).partition(" beats")[0] for one in planned.shortfalls} == {
        f'{path}:3 "[broken"'
    }
    held = after(theirs, run(theirs, policy, override=True))
    assert held[path].endswith("#mlhost.limits# [broken\n")


def test_a_fault_behind_ours_is_no_harm() -> None:
    assert run({f"{SYSTEM_D}/95-v.conf": "[broken\n"}, DEFAULT).shortfalls == ()


@pytest.mark.parametrize(
    ("main", "note"),
    [
        (None, "services.units.x.service: there is no such unit here; this waits for it"),
        (Source("/etc/systemd/system/x.service", ""), "services.units.x.service: /etc/systemd/system/x.service masks it; this waits until it does not"),
    ],
)  # fmt: skip
def test_a_unit_that_is_not_there_is_a_note(main: Source | None, note: str) -> None:
    planned = plan_services(POLICY, state(main=main), None)
    assert (planned.problems, planned.notes) == ((), (note,))
    assert planned.edits


def test_a_name_for_many_units_needs_no_file() -> None:
    units = {"user-.slice": UnitRule({}, 500), "y-.service": UnitRule({}, 500)}
    assert plan_services(ServicesPolicy(units=units), state(), None).notes == ()


def test_the_files_as_they_will_be() -> None:
    theirs = {f"{X_D}/10-a.conf": "a", f"{X_D}/{OURS}": "old", f"{SYSTEM_D}/a.conf": "m"}
    files = state(theirs).files["x.service"]
    texts = {f"{X_D}/10-a.conf": None, f"{X_D}/{OURS}": "new", find_target("system.conf"): "s"}
    got = apply_texts(files, "x.service", texts)
    assert got.dropins == (Source(f"{X_D}/{OURS}", "new"),)
    assert [one.text for one in got.manager_dropins] == ["s", "m"]
