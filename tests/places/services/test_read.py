# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of a policy are found among what runs: instances and prefixes, never containers."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlhost_limits.host.look import Process, find_user_managers
from mlhost_limits.services import read as services_read
from mlhost_limits.services.read import find_owned, is_template, pick_oldest, read_editable


def process(pid: int, path: str, comm: str = "x", uid: int = 0) -> Process:
    return Process(pid, comm, uid, f"0::{path}", pid)


USER = "/user.slice/user-1000.slice/user@1000.service"
PROCESSES = [
    process(9, "/system.slice/trainer.service"),
    process(8, "/system.slice/trainer.service/sub"),
    process(7, "/system.slice/system-worker.slice/worker@1.service"),
    process(6, "/system.slice/docker.service/docker/0123456789abcdef"),
    process(5, f"{USER}/init.scope", "systemd", 1000),
    process(4, f"{USER}/init.scope", "(sd-pam)"),
    process(3, f"{USER}/app.slice/worker@2.service"),
    process(2, "/user.slice/user-0.slice/session-1.scope"),
]


@pytest.mark.parametrize(
    ("owners", "found"),
    [
        (["trainer.service"], {"trainer.service": {"trainer.service": [9, 8]}}),
        (["worker@.service"], {"worker@.service": {"worker@1.service": [7]}}),
        (["docker.service"], {"docker.service": {}}),
        (["user@.service"], {"user@.service": {"user@1000.service": [5, 4]}}),
        (["app.slice"], {"app.slice": {}}),
        (["user-.slice"], {"user-.slice": {"user-1000.slice": [5, 4, 3], "user-0.slice": [2]}}),
        (
            ["user-.slice", "user-0.slice"],
            {"user-.slice": {"user-1000.slice": [5, 4, 3]}, "user-0.slice": {"user-0.slice": [2]}},
        ),
        ([], {}),
    ],
)
def test_each_running_unit_belongs_to_the_narrowest_name(
    owners: list[str], found: dict[str, dict[str, list[int]]]
) -> None:
    owned = find_owned(owners, PROCESSES)
    assert {
        owner: {unit: [one.pid for one in members] for unit, members in units.items()}
        for owner, units in owned.items()
    } == found


def test_managers_of_users() -> None:
    """Another user's group of the same name, or another's process, is nobody's manager."""
    inner = process(12, f"{USER}/user@1001.service/init.scope", "systemd", 1000)
    outer = process(13, "/user.slice/user-1002.slice/user@1002.service/init.scope", "systemd", 9)
    found = find_user_managers([inner, outer, *PROCESSES])
    assert {uid: one.pid for uid, one in found.items()} == {1000: 5}
    assert pick_oldest(PROCESSES).pid == 2


@pytest.mark.parametrize(
    "path",
    [
        f"{USER}/mine/user@0.service/init.scope",
        f"{USER}/mine/user@1000.service/init.scope",
        f"{USER}/app.slice/x@1.service/user@1001.service/init.scope",
        "/user.slice/user-1001.slice/user@1001.service/init.scope",
    ],
)
def test_a_user_passes_no_process_off_as_a_manager(path: str) -> None:
    fake = process(12, path, "systemd")._replace(uid=1000)
    assert find_user_managers([fake]) == {}


@pytest.mark.parametrize(
    "path", [f"{USER}/system.slice", "/system.slice/docker-0123456789ab.scope/system.slice"]
)
def test_a_slice_is_one_of_the_system_s_own(path: str) -> None:
    made = process(12, path.replace("system.slice/d", "a.slice/d"))
    assert find_owned(["system.slice"], [made]) == {"system.slice": {}}


def test_names_that_stand_for_many() -> None:
    names = ("a@.service", "a-.slice", "a@b.service")
    assert [is_template(name) for name in names] == [True, True, False]


def test_a_drop_in_is_a_file_of_its_own_with_the_name_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.conf").write_text("[Service]\n")
    for name in ("notes.txt", ".hidden.conf"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder.conf").mkdir()
    (tmp_path / "link.conf").symlink_to(tmp_path / "a.conf")
    monkeypatch.setattr(services_read, "list_dropin_folders", lambda: [str(tmp_path)])
    assert read_editable() == {str(tmp_path / "a.conf"): "[Service]\n"}
