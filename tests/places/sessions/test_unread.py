# SPDX-License-Identifier: GPL-3.0-or-later
"""A line that was meant for pam_limits and that it skips is told, as it must be written."""

from __future__ import annotations

import pytest
from mlhost_limits.core.distribution import Dialect
from mlhost_limits.sessions.unread import find_unread

CONF, OTHER = "/etc/security/limits.conf", "/etc/security/limits.d"
FIELDS = "it cannot be understood as 'domain soft|hard|- item value'"
NUMBER = "a number is a name there; one with a colon before it is an id"
THREE = "it has three fields; four are needed"


@pytest.mark.parametrize(
    ("line", "reason", "instead"),
    [
        ("alice nofile 65536", THREE, "alice - nofile 65536"),
        ("alice soft nofiles 65536", FIELDS, "alice soft nofile 65536"),
        ("alice: soft nofile = many", "", ""),
        ("1000 soft nofile 65536", NUMBER, ":1000 soft nofile 65536"),
        ("@1000 hard nofile max", NUMBER, "@:1000 hard nofile unlimited"),
        ("alice soft nofile 65536 files", "", ""),
        ("alice soft nofile is 65536", FIELDS, "alice soft nofile 65536"),
        ("alice soft nofile is really 65536", "", ""),
        ("alice - maxlogins 5", "", ""),
        ("alice - nofile 5", "", ""),
        ("alice - nothing 5", "", ""),
        ("alice - newthing nofile 5", "", ""),
    ],
)
def test_a_line_as_it_was_meant(line: str, reason: str, instead: str) -> None:
    found = [(one.reason, one.instead) for one in find_unread({CONF: line}, {}, Dialect())]
    assert found == ([(reason, instead)] if reason else [])


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("95-site", "95-site.conf"),
        ("95-site.txt", "95-site.conf"),
        ("95-site.conf.bak", "95-site.conf"),
        (".95-site.conf", "95-site.conf"),
        ("95-v1.2.cfg", "95-v1.2.conf"),
    ],
)
def test_the_name_under_which_a_file_would_be_read(name: str, right: str) -> None:
    text = {f"{OTHER}/{name}": "# a\nalice - nofile 5\nalice both nofile 5\n"}
    (found,) = find_unread({}, text, Dialect())
    assert (found.name, found.line.line) == (right, 2)
    assert found.reason == "pam_limits reads files named *.conf alone"
