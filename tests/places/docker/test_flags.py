# SPDX-License-Identifier: GPL-3.0-or-later
"""Flags of dockerd state defaults of new containers; what they would stop is named."""

from __future__ import annotations

import pytest
from mlhost_limits.core.values import UNLIMITED, Declaration, Rlimit
from mlhost_limits.docker.daemon_json import StatedDefault
from mlhost_limits.docker.dockerd_flags import Flag
from mlhost_limits.docker.flags import find_flag_problems, parse_ulimit, read_flag_defaults


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nofile=1024:4096", ("nofile", Rlimit(1024, 4096))),
        ("nofile=1024", ("nofile", Rlimit(1024, 1024))),
        ("memlock=-1", ("memlock", Rlimit(UNLIMITED, UNLIMITED))),
        ("core=+05:-1", ("core", Rlimit(5, UNLIMITED))),
        ("core=-5", ("core", Rlimit(2**64 - 5, 2**64 - 5))),
        *((text, None) for text in ("", "nofile", "nofile=", "NOFILE=1", "as=1", "x=1")),
        *((f"core={value}", None) for value in ("5:4", "-1:5", "1k", " 1", "1:2:3", "1:")),
        *((f"core={value}", None) for value in (2**63, -(2**63) - 1, "1.0", "unlimited")),
    ],
)
def test_a_limit_is_read_as_dockerd_reads_it(
    text: str, expected: tuple[str, Rlimit] | None
) -> None:
    assert parse_ulimit(text) == expected


def test_the_last_flag_of_a_name_counts() -> None:
    """Each default has the place of its flag; other flags and refused ones state nothing."""
    values = ("nofile=100:200", "core=0", "nofile=300:400", "nofile=x")
    flags = [
        Flag("debug", "", "/u", 1),
        *(Flag("default-ulimit", value, "/u", line) for line, value in enumerate(values, 1)),
        *(Flag("default-shm-size", value, "/u", 9) for value in ("1g", "x")),
        Flag("label", "nofile=5", "/u", 1),
    ]
    nofile = Declaration("/u", 3, "--default-ulimit=nofile=300:400", "300:400")
    core = Declaration("/u", 2, "--default-ulimit=core=0", "0:0")
    size = Declaration("/u", 9, "--default-shm-size=1g", 2**30)
    assert read_flag_defaults(flags) == [
        StatedDefault("nofile", Rlimit(300, 400), nofile),
        StatedDefault("core", Rlimit(0, 0), core),
        StatedDefault("shm_size", Rlimit(2**30, 2**30), size),
    ]


def test_a_size_of_0_is_a_tmpfs_without_end() -> None:
    """In daemon.json it stands for the default, of a flag for no size at all."""
    (size,) = read_flag_defaults([Flag("default-shm-size", "0", "/u", 1)])
    assert size.limit == Rlimit(UNLIMITED, UNLIMITED)


@pytest.mark.parametrize(
    ("name", "value", "fault", "stops"),
    [
        ("ulimit", "nofile=5:4", "is not a limit, dockerd takes NAME=SOFT:HARD", "dockerd"),
        ("ulimit", "nofile=6", ": is too low: no container starts", "containers"),
        (
            *("ulimit", "nofile=9:1001"),
            *(": is above fs.nr_open, 1000: no container starts", "containers"),
        ),
        ("ulimit", "core=5:-3", "is not a limit, dockerd takes NAME=SOFT:HARD", "dockerd"),
        (
            *("ulimit", "core=-5:-4"),
            *("", ""),
        ),
        (
            *("ulimit", "core=-5:4"),
            *(f": soft {2**64 - 5} is above hard 4: no container starts", "containers"),
        ),
        ("shm-size", "8", "", ""),
        ("shm-size", "-1", "is not a size, dockerd takes one such as 8G", "dockerd"),
        ("shm-size", "9999999p", ": is too large: no container starts", "containers"),
    ],
)
def test_what_a_flag_stops(name: str, value: str, fault: str, stops: str) -> None:
    """dockerd itself, or every container, with the flag as it is written."""
    found = list(find_flag_problems([Flag(f"default-{name}", value, "/u", 3)], 1000))
    space = "" if fault.startswith(":") else " "
    text = f"/u:3: --default-{name}={value}{space}{fault}"
    assert [one[:2] for one in found] == ([(text, stops)] if fault else [])
    places = [(one.at.place, one.at.text) for one in found if one.at]
    assert places == ([("/u:3", f"--default-{name}={value}")] if fault else [])
