# SPDX-License-Identifier: GPL-3.0-or-later
"""A cgroup's path, as /proc gives it on real hosts, tells what systemd knows a process as."""

from __future__ import annotations

import pytest
from mlhost_limits.core.cgroup import (
    Home,
    count_cpus,
    find_home,
    find_paths,
    list_units,
    split_rows,
)

NONE = Home()


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ("0::/system.slice/x.service", Home("x.service")),
        ("0::/system.slice/system-getty.slice/getty@tty1.service", Home("getty@tty1.service")),
        ("0::/system.slice/x.service/worker", Home("x.service")),
        ("0::/user.slice/user-0.slice/session-c1.scope", Home(session="c1")),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/init.scope",
            Home("user@1000.service", "", 1000),
        ),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/foo.service",
            Home("user@1000.service", "foo.service", 1000),
        ),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/tmux-spawn-1.scope",
            Home("user@1000.service", "tmux-spawn-1.scope", 1000),
        ),
        ("4:memory:/a.service\n1:name=systemd:/system.slice/x.service\n0::/", Home("x.service")),
        ("0::/init.scope", NONE),
        ("0::/", NONE),
        ("", NONE),
        ("no cgroup", NONE),
        ("0::/system.slice/run-r12.scope", NONE),
        (f"0::/system.slice/docker-{'a1' * 32}.scope", NONE),
        (f"0::/docker/{'a1' * 32}", NONE),
        (f"0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-{'0' * 64}.scope", NONE),
        ("0::/lxc.payload.web/system.slice/x.service", NONE),
        ("0::/machine.slice/libpod-0123456789abcdef.scope/container", NONE),
    ],
)
def test_the_home_of_a_process(text: str, home: Home) -> None:
    assert find_home(text) == home


OWN = "/user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    ("path", "units"),
    [
        ("/system.slice/x.service/slurmd.service", "system.slice x.service"),
        (f"{OWN}/slurmd.service", "user.slice user-1000.slice user@1000.service"),
        ("/system.slice/docker-ab.scope/slurmd.service", "system.slice docker-ab.scope"),
        ("/kubepods.slice/a/slurmd.service", "kubepods.slice slurmd.service"),
        ("/", ""),
    ],
)
def test_what_a_unit_makes_below_itself_is_no_unit(path: str, units: str) -> None:
    assert list_units(f"0::{path}") == tuple(units.split())


def test_a_user_s_manager_alone_is_no_service_of_the_user() -> None:
    own = "/user.slice/user-1000.slice/user@1000.service"
    assert find_home(f"0::{own}") == Home("user@1000.service", "", 1000)
    assert find_home(f"0::{own}/init.scope") == Home("user@1000.service", "", 1000)
    assert find_home(f"0::{own}/a.service") == Home("user@1000.service", "a.service", 1000)


def test_a_path_may_hold_colons() -> None:
    assert split_rows("0::/a:b.service\nodd\n3:cpu,cpuacct:/x") == [
        ["0", "", "/a:b.service"],
        ["3", "cpu,cpuacct", "/x"],
    ]
    assert find_paths("3:cpu,cpuacct:/x") == {"cpu": "/x", "cpuacct": "/x"}


@pytest.mark.parametrize(("text", "count"), [("0-3,8", 5), ("7", 1), ("", 0), ("0-0", 1)])
def test_cpus_are_counted(text: str, count: int) -> None:
    assert count_cpus(text) == count
