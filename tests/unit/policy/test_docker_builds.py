# SPDX-License-Identifier: GPL-3.0-or-later
"""A step of BuildKit has what dockerd was started with, but for what Go did to it."""

from __future__ import annotations

import pytest
from mlhost_limits.policy.docker_builds import inherit_nofile, is_raised_for_all
from mlhost_limits.policy.rlimit import Rlimit

STOCK = Rlimit(1024, 524288)


@pytest.mark.parametrize(
    ("go", "expected"),
    [
        ("go1.13.8", True),  # docker-ce 19.03
        ("go1.19.8", True),  # Debian 12
        ("go1.19.9", False),
        ("go1.20", True),
        ("go1.20.3", True),
        ("go1.20.4", False),
        ("go1.21", False),
        ("go1.24.4", False),  # Debian 13
        ("go1.22rc1", False),
        ("go1.26.0-X:nodwarf5", False),
        ("", None),
        ("devel go1.25-3c2e6f2", None),
        ("gccgo (Debian 12.2.0-14) 12.2.0", None),
    ],
)
def test_since_when_go_gives_the_soft_limit_back(go: str, expected: bool | None) -> None:
    assert is_raised_for_all(go) is expected


@pytest.mark.parametrize(
    ("seen", "go", "given", "expected"),
    [
        # As measured in RUN steps: Docker 26.1.5 as Debian 13 has it, and with a drop-in of it.
        (Rlimit(524287, 524288), "go1.24.4", STOCK, STOCK),
        (Rlimit(1048575, 1048576), "go1.24.4", Rlimit(65536, 1048576), Rlimit(65536, 1048576)),
        # Docker 20.10.24 of Debian 12, with a drop-in.
        (Rlimit(25000, 25000), "go1.19.8", Rlimit(20000, 25000), Rlimit(25000, 25000)),
        (Rlimit(524288, 524288), "go1.21", STOCK, STOCK),
        (Rlimit(524287, 524288), "go1.24.4", None, None),
        (Rlimit(524287, 524288), "go1.24.4", Rlimit(1024, 4096), None),
        (Rlimit(524287, 524288), "", STOCK, None),
        (Rlimit(1024, 4096), "", None, Rlimit(1024, 4096)),  # Raised by nobody.
    ],
)
def test_what_a_step_has(
    seen: Rlimit, go: str, given: Rlimit | None, expected: Rlimit | None
) -> None:
    """The soft limit is the unit's where Go hides it, and unknown where that does not fit."""
    assert inherit_nofile(seen, go, given) == expected
