# SPDX-License-Identifier: GPL-3.0-or-later
"""Of a container that Quadlet makes the .container file is read, and its line is named."""

from __future__ import annotations

import time

import pytest
from mlhost_limits.containers.policy import SHM, ContainerPolicy
from mlhost_limits.containers.spec import Started
from mlhost_limits.core.cause import Cause, Remedy
from mlhost_limits.core.finding import FAIL, Finding, Observation, Requirement
from mlhost_limits.core.reader import Limit
from mlhost_limits.core.values import UNLIMITED, Rlimit
from mlhost_limits.podman.quadlet import (
    _LONGEST_NUMBER,
    Quadlet,
    explain_quadlet,
    find_service,
    find_source,
    read_quadlet,
)
from mlhost_limits.podman.running import Made, explain_running, find_tasks_causes
from mlhost_limits.systemd.unit_file import Source

from tests.worlds.pasted import find_scripts

FILE = "/etc/containers/systemd/web.container"
POLICY = ContainerPolicy({"nofile": Limit(65536, 1048576)}, 2**30)
NOFILE = Requirement("container:podman/web", "nofile", "hard", 1048576)
SIZE = Requirement("container:podman/web", SHM, "value", 2**30, unit="bytes")
TASKS = Requirement("container:podman/web", "tasks", "value", 4096)
SILENT = Cause("podman-not-stated", "no file states it", Remedy("state it"))
ID = "libpod-payload-" + 64 * "a"


def quadlet(text: str, uid: int | None = None) -> Quadlet:
    return Quadlet("web.service", uid, read_quadlet([Source(FILE, f"[Container]\n{text}\n")]))


@pytest.mark.parametrize(
    ("cgroup", "service"),
    [
        (f"0::/system.slice/web.service/{ID}", ("web.service", None)),
        (
            f"0::/user.slice/user-1000.slice/user@1000.service/app.slice/web.service/{ID}/container",
            ("web.service", 1000),
        ),
        ("0::/machine.slice/libpod-1.scope", ("", None)),
        ("0::/user.slice/user-1000.slice/user@1000.service/user.slice/x.scope", ("", None)),
        ("4:pids:/system.slice/a.service", ("", None)),
        ("1:name=systemd:/system.slice/a.service", ("a.service", None)),
    ],
)
def test_the_service_of_a_container(cgroup: str, service: tuple[str, int | None]) -> None:
    assert find_service(cgroup) == service


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"# Automatically generated\n[X-Container]\n[Unit]\nSourcePath={FILE}\n", FILE),
        ("[Unit]\nSourcePath=/etc/fstab\n", ""),
        ("[Unit]\nAfter=x\n", ""),
    ],
)
def test_what_a_generated_unit_was_made_of(text: str, path: str) -> None:
    assert find_source(text) == path


def test_what_a_file_and_its_drop_in_state() -> None:
    main = "[Container]\nImage=x\nUlimit=nofile=1024:4096\nUlimit=memlock=-1\nShmSize=1g\n"
    dropin = "[Service]\nUlimit=core=0\n[Container]\nUlimit=nofile=2048\n"
    stated = read_quadlet([Source(FILE, main), Source(f"{FILE}.d/a.conf", dropin)])
    assert {item: one.value for item, one in stated.items()} == {
        "nofile": Rlimit(2048, 2048),
        "memlock": Rlimit(UNLIMITED, UNLIMITED),
        SHM: 2**30,
    }
    assert stated["nofile"].at.place == f"{FILE}.d/a.conf:4"
    assert stated["memlock"].entry == "memlock=-1"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Ulimit = nofile=1024", "Ulimit = nofile=1024"),
        ("PodmanArgs=-q \\\n --ulimit nofile=1024", "PodmanArgs=-q \\"),
        ("Ulimit=nofile=1024\r", "Ulimit=nofile=1024\r"),
        ("Ulimit=nofile=1024\n\r", "Ulimit=nofile=1024"),
    ],
)
def test_a_statement_is_shown_as_its_line_stands(text: str, line: str) -> None:
    assert quadlet(text).stated["nofile"].at.text == line


@pytest.mark.parametrize(
    ("args", "stated"),
    [
        ("--ulimit nofile=1:2 --shm-size=64m", {"nofile": Rlimit(1, 2), SHM: 2**26}),
        ("--ulimit=nofile=1:2 --ulimit=host", {"nofile": Rlimit(1, 2)}),
        ("--ulimit 'nofile=1", {}),
        ("--shm-size=much --ulimit", {}),
        ("--pids-limit 9 --pids-limit=-1", {"tasks": UNLIMITED}),
        ("--pids-limit=few", {}),
        ("--pids-limit=1", {"tasks": 1}),
        ("--pids-limit=0", {"tasks": UNLIMITED}),
    ],
)
def test_options_of_podman_count_after_the_keys(args: str, stated: dict[str, object]) -> None:
    found = quadlet(f"PodmanArgs={args}\nUlimit=nofile=7").stated
    expected = {"nofile": Rlimit(7, 7), **stated}
    assert {item: one.value for item, one in found.items()} == expected


@pytest.mark.parametrize(
    ("wanted", "line", "written"),
    [
        (NOFILE, "Ulimit=nofile=1024:4096", "Ulimit=nofile=65536:1048576"),
        (
            NOFILE._replace(bound="soft", minimum=65536),
            "Ulimit=nofile=1024",
            "Ulimit=nofile=65536:1048576",
        ),
        (
            NOFILE,
            "PodmanArgs=-q --ulimit nofile=1:2",
            "PodmanArgs=-q --ulimit nofile=65536:1048576",
        ),
        (SIZE, "ShmSize=64m", "ShmSize=1073741824"),
        (TASKS, "PidsLimit=100", "PidsLimit=4096"),
        (TASKS._replace(minimum=UNLIMITED), "PidsLimit=100", "PidsLimit=-1"),
        (TASKS, "PodmanArgs=--pids-limit=100", "PodmanArgs=--pids-limit=4096"),
    ],
)
def test_a_line_that_gives_too_little_is_written_right(
    wanted: Requirement, line: str, written: str
) -> None:
    (cause,) = explain_quadlet(wanted, quadlet(line), (SILENT,), POLICY)
    assert cause.code == "quadlet-line"
    assert cause.at
    assert cause.at.place == f"{FILE}:2"
    edit, *rest = cause.remedy.commands
    assert find_scripts([edit]) == [f"2c\\{written}"]
    assert rest == [("systemctl", "daemon-reload"), ("systemctl", "restart", "web.service")]


def test_a_file_in_a_home_is_left_to_its_owner() -> None:
    (cause,) = explain_quadlet(NOFILE, quadlet("Ulimit=nofile=1024", 1000), (), POLICY)
    assert cause.remedy.commands == ()
    assert cause.remedy.then == "run systemctl --user daemon-reload and restart web.service"


def test_a_service_that_is_older_than_what_its_files_say() -> None:
    (cause,) = explain_quadlet(NOFILE, quadlet("Ulimit=nofile=65536:1048576"), (SILENT,), POLICY)
    assert (cause.code, cause.at and cause.at.line) == ("quadlet-not-restarted", 2)
    causes = explain_quadlet(NOFILE, quadlet(""), (SILENT,), POLICY)
    assert [one.code for one in causes] == ["podman-not-stated", "quadlet-not-restarted"]


def test_a_running_container_of_quadlet() -> None:
    finding = Finding(FAIL, NOFILE, Observation(4096, "/proc/7/limits"))
    created = Started("web", {"nofile": Rlimit(1024, 4096)})
    line = quadlet("Ulimit=nofile=1024:4096")
    told = explain_running(finding, Made(ID, created, line), None, POLICY)
    assert [cause.code for cause in told.causes] == ["quadlet-line"]
    unknown = explain_running(finding, Made(ID, Started("web"), line), None, POLICY)
    assert unknown.causes == told.causes
    inside = created._replace(limits={"nofile": Rlimit(65536, 1048576)})
    told = explain_running(finding, Made(ID, inside, line), None, POLICY)
    assert [cause.code for cause in told.causes] == ["podman-changed-inside"]


@pytest.mark.parametrize(
    ("line", "own", "codes"),
    [
        ("PidsLimit=100", 100, ["quadlet-line"]),
        ("PidsLimit=9000", 100, ["quadlet-not-restarted"]),
        ("PidsLimit=100", 50, ["podman-changed-inside"]),
    ],
)
def test_tasks_of_a_container_of_quadlet(line: str, own: int, codes: list[str]) -> None:
    made = Made("a", Started("web", {}, "", 100), quadlet(line))
    causes = find_tasks_causes(TASKS, own, made, None, POLICY)
    assert [cause.code for cause in causes] == codes


@pytest.mark.parametrize(
    "line", ["Ulimit=nofile={0}:{0}", "PodmanArgs=--ulimit nofile={0}:{0}", "PidsLimit={0}"]
)
def test_a_file_of_a_user_is_read_in_the_time_of_its_length(line: str) -> None:
    """What counts is the last line; it alone is looked up in the file."""
    lines = "\n".join(line.format(number) for number in range(1, 20_000))
    begun = time.process_time()
    (stated,) = read_quadlet([Source(FILE, f"[Container]\n{lines}\n")]).values()
    assert time.process_time() - begun < 3
    assert (stated.at.line, stated.at.text) == (20_000, line.format(19_999))


def test_a_number_may_be_so_long() -> None:
    for digits, found in ((_LONGEST_NUMBER, {"tasks"}), (_LONGEST_NUMBER + 1, set())):
        assert set(quadlet(f"PidsLimit={'9'.rjust(digits, '0')}").stated) == found


def test_a_number_without_an_end_is_none() -> None:
    assert read_quadlet([Source(FILE, f"[Container]\nPidsLimit={'1' * 200_000}\n")]) == {}
