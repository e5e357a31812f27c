# SPDX-License-Identifier: GPL-3.0-or-later
"""Each unit that bounds tasks below what is asked is named, with its line and the way out."""

from __future__ import annotations

from mlhost_limits.core.values import UNLIMITED
from mlhost_limits.services.tasks_causes import (
    TasksLevel,
    find_tasks_causes,
    outlive,
    predict_all,
)
from mlhost_limits.systemd.model import Files
from mlhost_limits.systemd.unit_file import Source

from tests.worlds.distributions import DEBIAN

ALL = 10000
D = "/etc/systemd/system/x.service.d"
SHARE = Source("/usr/lib/systemd/system/user-.slice.d/10-defaults.conf", "[Slice]\nTasksMax=33%\n")


def service(*dropins: Source, manager: str = "", seen: int | None = None) -> TasksLevel:
    main = Source("/usr/lib/systemd/system/x.service", "[Service]\nExecStart=/bin/x\n")
    conf = Source("/etc/systemd/system.conf", manager) if manager else None
    return TasksLevel(
        "x.service", Files(main, dropins, conf, vendor=DEBIAN), seen, "/sys/x/pids.max"
    )


def stated(value: str, folder: str = D) -> Source:
    return Source(f"{folder}/50-few.conf", f"[Service]\nTasksMax={value}\n")


SYSTEM = TasksLevel("system.slice", Files(None))
USER = TasksLevel("user-1000.slice", Files(None, (SHARE,)))


def test_the_lowest_counts() -> None:
    assert predict_all([service(stated("9000")), USER], ALL) == 3300
    assert predict_all([service(), SYSTEM], ALL) == 1500
    assert predict_all([], ALL) == UNLIMITED


def test_nothing_is_blamed_where_it_is_enough() -> None:
    assert not find_tasks_causes(1500, [service(seen=1500), SYSTEM], ALL)


def test_the_line_of_a_unit() -> None:
    (cause,) = find_tasks_causes(4000, [service(stated("20"))], ALL)
    assert cause.code == "tasks-unit-too-low"
    assert cause.text == f'{D}/50-few.conf:2 "TasksMax=20" bounds x.service'
    assert cause.remedy.text == f'state "TasksMax=4000" in {D}/95-site.conf'
    assert cause.remedy.commands[-1] == ("systemctl", "daemon-reload")


def test_every_level_is_named_the_units_own_first() -> None:
    first, second = find_tasks_causes(UNLIMITED, [service(stated("20")), USER], ALL)
    assert first.remedy.text.startswith('state "TasksMax=infinity" in')
    assert second.code == "tasks-slice-too-low"
    assert second.text == f'{SHARE.path}:2 "TasksMax=33%" bounds user-1000.slice, 3300 tasks'
    site = "/etc/systemd/system/user-1000.slice.d/95-site.conf"
    assert second.remedy.text == f'state "TasksMax=infinity" in {site}'
    assert "[Slice]" in second.remedy.commands[1][2]


def test_the_default_of_the_manager() -> None:
    (cause,) = find_tasks_causes(4000, [service(manager="[Manager]\nDefaultTasksMax=9\n")], ALL)
    assert cause.code == "tasks-default-too-low"
    assert cause.text == (
        '/etc/systemd/system.conf:2 "DefaultTasksMax=9" bounds x.service to 9 tasks'
    )


def test_a_unit_that_asks_for_the_default() -> None:
    (cause,) = find_tasks_causes(4000, [service(stated(""))], ALL)
    text = "no file states TasksMax for x.service, and systemd's default is 1500"
    assert (cause.code, cause.text, cause.at) == ("tasks-default-too-low", text, None)


def test_the_default_itself_is_put_right_where_new_units_are_meant() -> None:
    known = service()._replace(unit="new.service", defaults_of="system.conf", seen=9)
    (cause,) = find_tasks_causes(4000, [known], ALL)
    assert cause.text == "no file states TasksMax for new units, and systemd's default is 1500"
    path = "/etc/systemd/system.conf.d/95-site.conf"
    assert cause.remedy.text == f'state "DefaultTasksMax=4000" in {path}'
    assert "[Manager]" in cause.remedy.commands[1][2]


def test_a_cgroup_that_has_not_what_the_files_give() -> None:
    (cause,) = find_tasks_causes(4000, [service(stated("5000"), seen=20)], ALL)
    assert cause.code == "tasks-not-in-force"
    assert cause.text == "files give x.service 5000 tasks, and /sys/x/pids.max has 20"
    assert cause.remedy.commands == (("systemctl", "daemon-reload"),)
    assert cause.at is not None
    assert cause.at.line == 2


def test_a_cgroup_that_may_hold_no_task_at_all() -> None:
    (cause,) = find_tasks_causes(4000, [service(stated("5000"), seen=0)], ALL)
    assert cause.text == "files give x.service 5000 tasks, and /sys/x/pids.max has 0"


def test_the_default_is_no_line_of_a_slice() -> None:
    known = service(manager="[Manager]\nDefaultTasksMax=5000\n", seen=20)
    (cause,) = find_tasks_causes(4000, [known], ALL)
    assert cause.at is not None
    assert cause.at.text == "DefaultTasksMax=5000"
    (cause,) = find_tasks_causes(4000, [known._replace(unit="x.slice")], ALL)
    assert (cause.code, cause.at) == ("tasks-not-in-force", None)


def test_new_units_of_a_manager_that_has_not_read_its_files() -> None:
    known = service(manager="[Manager]\nDefaultTasksMax=infinity\n", seen=20)
    (cause,) = find_tasks_causes(4000, [known._replace(defaults_of="system.conf")], ALL)
    assert cause.text == "files give new units unlimited tasks, and /sys/x/pids.max has 20"
    (bare,) = find_tasks_causes(1000, [service(seen=20)], ALL)
    assert bare.at is None


def test_a_name_that_cannot_be_typed_is_left_to_a_person() -> None:
    level = TasksLevel("a\n.slice", Files(None, (SHARE,)))
    (cause,) = find_tasks_causes(4000, [level], ALL)
    assert cause.remedy.commands == ()


def test_what_a_boot_leaves() -> None:
    known = service(stated("20", "/run/systemd/system/x.service.d"))
    assert predict_all([known], ALL) == 20
    assert predict_all(outlive([known]), ALL) == 1500
